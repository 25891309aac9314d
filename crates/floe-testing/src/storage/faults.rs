//! Faults of a storage as values, and what the storage was asked.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// What a storage, a reader or a writer can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// `Storage::exists`
    Exists,
    /// `Storage::metadata`
    Metadata,
    /// `Storage::read`, of a whole file
    Read,
    /// `Storage::reader`, which should do no I/O
    Reader,
    /// `FileRead::read`, of a range
    ReadRange,
    /// `Storage::write`, of a whole file
    Write,
    /// `Storage::writer`
    Writer,
    /// `FileWrite::write`
    WritePart,
    /// `FileWrite::close`
    Close,
    /// `Storage::delete`, also of each path of a `delete_stream`
    Delete,
    /// `Storage::delete_prefix`
    DeletePrefix,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// What goes wrong with one operation.
#[derive(Clone, Debug)]
pub enum StorageFaultKind {
    /// It fails and does nothing.
    Error,
    /// It does its work, then fails: the caller can't know.
    LoseAnswer,
    /// A read gives this many bytes fewer than it should.
    ShortRead(u64),
    /// A bit is flipped in the byte at this offset of what a read gives.
    WrongByte(u64),
    /// It waits at the gate before it does its work.
    Hold(Gate),
}

/// A fault to inject.
#[derive(Clone, Debug)]
pub struct StorageFault {
    /// The operation that it strikes.
    pub operation: Operation,
    /// Only paths that contain this; empty: all.
    pub path_contains: String,
    /// Lets this many such operations pass first.
    pub skip: u64,
    /// How many it strikes.
    pub times: u64,
    /// What happens.
    pub kind: StorageFaultKind,
}

impl StorageFault {
    /// Strikes the next such operation.
    pub fn once(operation: Operation, path_contains: &str, kind: StorageFaultKind) -> Self {
        Self {
            operation,
            path_contains: path_contains.to_owned(),
            skip: 0,
            times: 1,
            kind,
        }
    }

    /// Strikes every such operation.
    pub fn always(operation: Operation, path_contains: &str, kind: StorageFaultKind) -> Self {
        Self {
            times: u64::MAX,
            ..Self::once(operation, path_contains, kind)
        }
    }

    /// Lets `operations` pass first.
    pub fn after(mut self, operations: u64) -> Self {
        self.skip = operations;
        self
    }
}

/// Holds operations until a test lets them go on.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<Passage>>);

#[derive(Debug, Default)]
struct Passage {
    open: bool,
    waiting: usize,
}

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Passage::default())))
    }
}

impl Gate {
    /// Lets all that wait go on, and all that come later.
    pub fn open(&self) {
        self.0.send_modify(|passage| passage.open = true);
    }

    /// Waits until this many operations stand at the gate.
    pub async fn held(&self, operations: usize) {
        let mut passage = self.0.subscribe();
        // The sender lives as long as this gate does.
        let _ = passage
            .wait_for(|passage| passage.waiting >= operations)
            .await;
    }

    pub(super) async fn pass(&self) {
        let mut passage = self.0.subscribe();
        let _waiting = Waiting::at(self);
        let _ = passage.wait_for(|passage| passage.open).await;
    }
}

/// Counted at a gate, also when the operation is dropped there.
struct Waiting<'a>(&'a Gate);

impl<'a> Waiting<'a> {
    fn at(gate: &'a Gate) -> Self {
        gate.0.send_modify(|passage| passage.waiting += 1);
        Self(gate)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|passage| passage.waiting -= 1);
    }
}

/// One operation as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageRecord {
    /// What.
    pub operation: Operation,
    /// On which file or prefix.
    pub path: String,
    /// Of a ranged read.
    pub range: Option<Range<u64>>,
}

/// Names an injected fault, to ask whether it struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageFaultId(usize);

/// Faults and counts of one storage. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct StorageFaults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    planned: Vec<Planned>,
    records: Vec<StorageRecord>,
}

#[derive(Debug)]
struct Planned {
    fault: StorageFault,
    seen: u64,
    struck: u64,
    withdrawn: bool,
}

impl StorageFaults {
    /// Adds a fault; of several that match one operation the first added strikes.
    pub fn inject(&self, fault: StorageFault) -> StorageFaultId {
        let planned = &mut self.lock().planned;
        planned.push(Planned {
            fault,
            seen: 0,
            struck: 0,
            withdrawn: false,
        });
        StorageFaultId(planned.len() - 1)
    }

    /// How many operations a fault has struck.
    pub fn struck(&self, id: StorageFaultId) -> u64 {
        self.lock()
            .planned
            .get(id.0)
            .map_or(0, |planned| planned.struck)
    }

    /// Withdraws all faults.
    pub fn clear(&self) {
        for planned in &mut self.lock().planned {
            planned.withdrawn = true;
        }
    }

    /// Everything that was asked, in order.
    pub fn records(&self) -> Vec<StorageRecord> {
        self.lock().records.clone()
    }

    /// How often each operation was asked for.
    pub fn counts(&self) -> BTreeMap<Operation, u64> {
        let mut counts = BTreeMap::new();
        for record in &self.lock().records {
            *counts.entry(record.operation).or_default() += 1;
        }
        counts
    }

    /// How often one was.
    pub fn count(&self, operation: Operation) -> u64 {
        self.counts().get(&operation).copied().unwrap_or(0)
    }

    /// Starts counting anew.
    pub fn reset_counts(&self) {
        self.lock().records.clear();
    }

    /// Records an operation; gives the fault that strikes it.
    pub(super) fn take(
        &self,
        operation: Operation,
        path: &str,
        range: Option<Range<u64>>,
    ) -> Option<StorageFaultKind> {
        let mut state = self.lock();
        state.records.push(StorageRecord {
            operation,
            path: path.to_owned(),
            range,
        });
        let mut chosen = None;
        for planned in &mut state.planned {
            let fault = &planned.fault;
            let matches = fault.operation == operation && path.contains(&fault.path_contains);
            if planned.withdrawn || !matches {
                continue;
            }
            planned.seen += 1;
            if planned.seen > fault.skip && planned.struck < fault.times && chosen.is_none() {
                planned.struck += 1;
                chosen = Some(fault.kind.clone());
            }
        }
        chosen
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
