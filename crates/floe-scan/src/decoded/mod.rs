//! Files that this process has decoded: manifest lists, manifests, footers, delete files. One bound holds for all of them.

mod cache;
mod identity;

use std::any::Any;
use std::sync::{Arc, LazyLock, OnceLock};

use cache::DecodedCache;
pub use identity::Identity;

use crate::error::Result;

/// Bytes of decoded files that a process keeps unless told otherwise.
const DEFAULT_BYTES: u64 = 128 << 20;

static BYTES: OnceLock<u64> = OnceLock::new();

static KEPT: LazyLock<DecodedCache<(FileKey, Form), Erased>> = LazyLock::new(|| {
    let weight = |(file, _): &(FileKey, Form), kept: &Erased| file.weight() + kept.bytes;
    DecodedCache::new(*BYTES.get_or_init(|| DEFAULT_BYTES), weight)
});

/// Bounds the bytes of decoded manifests, footers and delete files that the process keeps (128 MiB unless told); false if
/// it is too late, because some are kept already.
pub fn set_decoded_bytes(bytes: u64) -> bool {
    BYTES.set(bytes).is_ok()
}

/// Which file was decoded. Two that are equal hold the same bytes, since the files of a table never change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileKey {
    pub(crate) identity: Identity,
    pub(crate) location: Arc<str>,
    /// `None` if nobody tells it.
    pub(crate) length: Option<u64>,
}

impl FileKey {
    pub(crate) fn new(identity: &Identity, location: &str, length: Option<u64>) -> Self {
        Self {
            identity: identity.clone(),
            location: location.into(),
            length,
        }
    }

    fn weight(&self) -> usize {
        size_of::<Self>() + self.location.len()
    }
}

/// What a file was decoded to: each form is of one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    ManifestList,
    Manifest,
    Footer,
    Positions,
    /// The deletion vector that begins here.
    Vector(u64),
    /// Rows of these columns.
    Equality(String),
}

/// Something decoded, with the bytes that it takes.
pub(crate) trait Decoded: Any + Send + Sync {
    fn bytes(&self) -> usize;
}

struct Erased {
    value: Arc<dyn Any + Send + Sync>,
    bytes: usize,
}

impl Erased {
    fn new<V: Decoded>(value: Arc<V>) -> Self {
        Self {
            bytes: value.bytes(),
            value,
        }
    }

    fn get<V: Decoded>(&self) -> Arc<V> {
        let value = self.value.clone().downcast();
        value.expect("each form of a file is decoded to one type")
    }
}

/// A file in this form if it is kept.
pub(crate) fn get<V: Decoded>(file: &FileKey, form: Form) -> Option<Arc<V>> {
    KEPT.get(&(file.clone(), form)).map(|kept| kept.get())
}

/// A file in this form: kept, or else decoded by one of all who ask, and kept then. An error is not kept.
pub(crate) async fn get_or_decode<V: Decoded>(
    file: &FileKey,
    form: Form,
    decode: impl AsyncFnOnce() -> Result<V>,
) -> Result<Arc<V>> {
    let key = (file.clone(), form);
    let load = async || Ok(Erased::new(Arc::new(decode().await?)));
    KEPT.get_or_load(&key, load).await.map(|kept| kept.get())
}

/// Lets go at once of what is too much, which is done in passing otherwise.
#[cfg(test)]
pub(crate) fn settle() {
    KEPT.weight();
}

/// Keeps what was decoded on the way to something else.
pub(crate) fn keep<V: Decoded>(file: &FileKey, form: Form, value: Arc<V>) {
    KEPT.insert((file.clone(), form), Erased::new(value));
}
