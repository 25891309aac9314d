//! What a plan came across, for those who report or warm.

use std::sync::{Arc, Mutex, PoisonError};

use iceberg::spec::{ManifestContentType, ManifestFile};

use crate::manifest::ManifestFiles;

/// What a plan came across.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanSummary {
    /// The manifest list and all its manifests, with their lengths where known.
    pub metadata: Vec<(String, Option<u64>)>,
    /// Manifests in the list.
    pub manifests: u64,
    /// Of them, those that were not read because no row of theirs can match.
    pub manifests_pruned: u64,
    /// Data files of the snapshot, as far as manifests were read or count them.
    pub files: u64,
    /// Of them, those that no matching row can be in.
    pub files_pruned: u64,
    /// Bytes of the pruned files whose manifests were read.
    pub bytes_pruned: u64,
    /// Whether rows may be deleted by files beside the data files.
    pub has_deletes: bool,
}

impl PlanSummary {
    pub(super) fn of_list(location: String, list: &ManifestFiles) -> Self {
        let manifests = list.entries.iter().map(|manifest| {
            (
                manifest.manifest_path.clone(),
                u64::try_from(manifest.manifest_length).ok(),
            )
        });
        Self {
            metadata: std::iter::once((location, None)).chain(manifests).collect(),
            manifests: list.entries.len() as u64,
            ..Self::default()
        }
    }

    pub(super) fn pruned_manifest(&mut self, manifest: &ManifestFile) {
        self.manifests_pruned += 1;
        if manifest.content == ManifestContentType::Data {
            let files = [manifest.added_files_count, manifest.existing_files_count];
            let files: u64 = files.into_iter().flatten().map(u64::from).sum();
            self.files += files;
            self.files_pruned += files;
        }
    }
}

/// A summary that grows while its plan is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared(Arc<Mutex<PlanSummary>>);

impl Shared {
    pub(super) fn new(summary: PlanSummary) -> Self {
        Self(Arc::new(Mutex::new(summary)))
    }

    pub(super) fn get(&self) -> PlanSummary {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut PlanSummary)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
