//! Tests of the library with a real database and real files.

mod adding;
mod embedding_models;
mod entries;
mod forgetting;
mod ranking;
mod searching;
mod tools;

use super::KIND;
use crate::database::TestDatabase;
use lango_core::{
    BoxFuture, Clock, EmbedError, Embedder, EmbeddingModel, EmbeddingPurpose, SessionId, Timestamp,
    UserId,
};
use lango_knowledge::{
    AddOptions, AddReport, Library, LibraryError, LibraryHit, LibraryQuery, LibraryResults,
    LibrarySearchMode, OfflineEmbedder,
};
use lango_store::Store;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A database and a folder of files.
pub(super) struct LibraryFixture {
    _folder: TempDir,
    pub files: PathBuf,
    pub place: TestDatabase,
    store: Arc<Store>,
    pub library: Library,
    pub user: UserId,
}

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000)
    }
}

impl LibraryFixture {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        fs::create_dir(&files).unwrap();
        let place = TestDatabase::new(KIND);
        let store = place.open();
        let embedder = OfflineEmbedder::with_frequencies(store.clone());
        let library = Library::new(
            store.clone(),
            Some(Arc::new(embedder)),
            Arc::new(FixedClock),
        );
        Self {
            files: files.canonicalize().unwrap(),
            _folder: folder,
            place,
            store,
            library,
            user: UserId::from("ada"),
        }
    }

    fn with_embedder(&self, embedder: Option<Arc<dyn Embedder>>) -> Library {
        Library::new(self.store.clone(), embedder, Arc::new(FixedClock))
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.files.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(super) async fn add(&self) -> AddReport {
        self.try_add(&self.files).await.unwrap()
    }

    async fn try_add(&self, path: &Path) -> Result<AddReport, LibraryError> {
        let (paths, options) = ([path.to_owned()], AddOptions::default());
        self.library
            .add(&self.user, &paths, &options, &|_| {})
            .await
    }

    async fn search(&self, text: &str, mode: LibrarySearchMode) -> LibraryResults {
        let query = query(text, mode);
        self.library.search(&self.user, None, &query).await.unwrap()
    }

    /// Returns the names of the matching files, in order.
    pub(super) async fn found(&self, text: &str) -> Vec<String> {
        names(&self.search(text, LibrarySearchMode::Lexical).await.hits)
    }

    /// Returns the values of the only column of an SQL query.
    pub(super) fn rows(&self, query: &str) -> Vec<String> {
        self.place.rows(query)
    }
}

fn query(text: &str, mode: LibrarySearchMode) -> LibraryQuery {
    LibraryQuery {
        text: text.to_owned(),
        limit: 10,
        collections: Vec::new(),
        mode,
    }
}

fn names(hits: &[LibraryHit]) -> Vec<String> {
    let name = |hit: &LibraryHit| hit.source.name.rsplit('/').next().unwrap().to_owned();
    hits.iter().map(name).collect()
}

/// An embedder with two dimensions: how many `a` and how many other letters a text has.
struct CountingEmbedder {
    maker: EmbeddingModel,
    fails: bool,
}

impl CountingEmbedder {
    fn new(version: u32) -> Self {
        Self {
            maker: EmbeddingModel {
                provider: "counting".into(),
                model: "letters".into(),
                dimensions: 2,
                version,
            },
            fails: false,
        }
    }
}

impl Embedder for CountingEmbedder {
    fn model(&self) -> &EmbeddingModel {
        &self.maker
    }

    fn embed(
        &self,
        texts: Vec<String>,
        _purpose: EmbeddingPurpose,
    ) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            if self.fails {
                return Err(EmbedError {
                    provider: "counting".into(),
                    detail: "out of fingers".to_owned(),
                    is_transient: true,
                });
            }
            let vector = |text: String| {
                let a = text.matches('a').count() as f32;
                vec![a, text.len() as f32 - a]
            };
            Ok(texts.into_iter().map(vector).collect())
        })
    }
}

fn session(name: &str) -> SessionId {
    SessionId::from(name)
}
