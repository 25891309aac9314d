//! The state that is looked at, and its manifests: read as they are asked for, a few ahead.

use std::sync::Arc;

use floe_store::Store;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use iceberg::spec::{ManifestFile, TableMetadata};
use iceberg::table::Table;

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{
    Details, Manifest, ManifestFiles, manifest_files, manifest_of, read_details, read_manifest,
};
use crate::snapshot::Position;

/// Manifests that are read at once.
const WINDOW: usize = 8;

/// The state that is looked at.
#[derive(Clone, Debug)]
pub(super) struct Source {
    store: Store,
    position: Position,
}

/// How much of a manifest is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// What planning knows too, which may be kept decoded.
    Planning,
    /// Every field.
    Details,
}

/// A manifest that is decoded.
#[derive(Debug)]
pub(super) struct Opened {
    list: Arc<ManifestFiles>,
    at: usize,
    pub(super) manifest: Arc<Manifest>,
    /// By entry; empty unless it was asked for.
    pub(super) details: Vec<Details>,
    /// How errors name it.
    pub(super) what: String,
}

impl Opened {
    /// What the manifest list tells of it.
    pub(super) fn listed(&self) -> &ManifestFile {
        &self.list.entries[self.at]
    }

    pub(super) fn corrupt(&self, found: &str) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            format!("can't show {}: {found}", self.what),
        )
    }
}

impl Source {
    pub(super) fn new(store: &Store, position: &Position) -> Self {
        Self {
            store: store.clone(),
            position: position.clone(),
        }
    }

    pub(super) fn table(&self) -> &Table {
        self.position.table()
    }

    pub(super) fn metadata(&self) -> &TableMetadata {
        self.position.table().metadata()
    }

    /// The manifest list; `None` for a table that never had a snapshot.
    pub(super) async fn list(&self) -> Result<Option<Arc<ManifestFiles>>> {
        match self.position.snapshot() {
            Some(snapshot) => manifest_files(&self.store, self.table(), snapshot)
                .await
                .map(Some),
            None => Ok(None),
        }
    }

    /// The manifests that are `wanted`, in the list's order.
    pub(super) fn manifests(
        &self,
        wanted: impl Fn(&ManifestFile) -> bool + Send + 'static,
        depth: Depth,
    ) -> BoxStream<'static, Result<Opened>> {
        let this = self.clone();
        stream::once(async move {
            let Some(list) = this.list().await? else {
                return Ok(stream::empty().boxed());
            };
            let places = (0..list.entries.len()).filter(|&at| wanted(&list.entries[at]));
            let places: Vec<usize> = places.collect();
            let open = move |at| {
                let (this, list) = (this.clone(), list.clone());
                async move { this.open(list, at, depth).await }
            };
            Ok(stream::iter(places).map(open).buffered(WINDOW).boxed())
        })
        .try_flatten()
        .boxed()
    }

    async fn open(&self, list: Arc<ManifestFiles>, at: usize, depth: Depth) -> Result<Opened> {
        let listed = &list.entries[at];
        let (manifest, details) = match depth {
            Depth::Planning => (self.manifest(listed).await?, Vec::new()),
            Depth::Details => {
                let (manifest, details) = read_details(self.table(), listed).await?;
                (Arc::new(manifest), details)
            }
        };
        Ok(Opened {
            what: manifest_of(self.table(), listed),
            list,
            at,
            manifest,
            details,
        })
    }

    /// A manifest as planning reads it.
    pub(super) async fn manifest(&self, listed: &ManifestFile) -> Result<Arc<Manifest>> {
        read_manifest(&self.store, self.table(), listed).await
    }
}
