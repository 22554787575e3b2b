//! The library on a real database and real files.

mod adding;
mod entries;
mod forgetting;
mod makers;
mod ranking;
mod searching;
mod tools;

use super::KIND;
use crate::place::Place;
use lango_core::{
    BoxFuture, Clock, EmbedError, Embedder, EmbeddingMaker, EmbeddingPurpose, SessionId, Timestamp,
    UserId,
};
use lango_knowledge::{
    AddOptions, AddReport, Hit, Library, LibraryError, Mode, OfflineEmbedder, Query, Results,
};
use lango_store::Store;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A database and a folder of files.
pub struct Home {
    _folder: TempDir,
    pub files: PathBuf,
    pub place: Place,
    store: Arc<Store>,
    pub library: Library,
    pub user: UserId,
}

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000)
    }
}

impl Home {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        fs::create_dir(&files).unwrap();
        let place = Place::new(KIND);
        let store = place.open();
        let embedder = OfflineEmbedder::with_frequencies(store.clone());
        let library = Library::new(store.clone(), Some(Arc::new(embedder)), Arc::new(Fixed));
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
        Library::new(self.store.clone(), embedder, Arc::new(Fixed))
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.files.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub async fn add(&self) -> AddReport {
        self.try_add(&self.files).await.unwrap()
    }

    async fn try_add(&self, path: &Path) -> Result<AddReport, LibraryError> {
        let (paths, options) = ([path.to_owned()], AddOptions::default());
        self.library
            .add(&self.user, &paths, &options, &|_| {})
            .await
    }

    async fn search(&self, text: &str, mode: Mode) -> Results {
        let query = query(text, mode);
        self.library.search(&self.user, None, &query).await.unwrap()
    }

    /// The names of the files that are found, in their order.
    pub async fn found(&self, text: &str) -> Vec<String> {
        names(&self.search(text, Mode::Lexical).await.hits)
    }

    /// What the only column of a query gives.
    pub fn rows(&self, query: &str) -> Vec<String> {
        self.place.rows(query)
    }
}

fn query(text: &str, mode: Mode) -> Query {
    Query {
        text: text.to_owned(),
        limit: 10,
        collections: Vec::new(),
        mode,
    }
}

fn names(hits: &[Hit]) -> Vec<String> {
    let name = |hit: &Hit| hit.source.name.rsplit('/').next().unwrap().to_owned();
    hits.iter().map(name).collect()
}

/// An embedder of two numbers: how many `a` and how many other letters a text has.
struct Counting {
    maker: EmbeddingMaker,
    fails: bool,
}

impl Counting {
    fn new(version: u32) -> Self {
        Self {
            maker: EmbeddingMaker {
                provider: "counting".into(),
                model: "letters".into(),
                dimensions: 2,
                version,
            },
            fails: false,
        }
    }
}

impl Embedder for Counting {
    fn maker(&self) -> &EmbeddingMaker {
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
                    is_passing: true,
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
