//! Listing, forgetting and making the vectors anew.

use super::{Library, LibraryError, embedded_text};
use lango_core::{EmbeddingPurpose, SessionId, Source, Text, Timestamp, UserId};
use lango_store::{DocumentFilter, DocumentRow, Removal, VectorOutcome};

/// How many chunks get their vectors in one change.
const VECTORS_AT_ONCE: usize = 128;

/// A document of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its id.
    pub id: i64,
    /// The collection it is in.
    pub collection: Text,
    /// The session that alone sees it, if it is not seen in all.
    pub session: Option<SessionId>,
    /// Where it came from, and whether its words may be believed.
    pub source: Source,
    /// What it is called.
    pub title: Text,
    /// The bytes of its file.
    pub size: u64,
    /// When it was added.
    pub added: Timestamp,
    /// How many chunks it has.
    pub chunks: u64,
}

/// What was forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// How many documents.
    pub documents: usize,
    /// How many chunks they had.
    pub chunks: u64,
}

/// What making the vectors anew gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReindexReport {
    /// How many chunks got a vector.
    pub embedded: usize,
}

impl Library {
    /// A user's documents by collection and name, those of every session, at most so many.
    pub async fn list(&self, user: &UserId, most: usize) -> Result<Vec<Document>, LibraryError> {
        let store = &self.store;
        let mut documents = Vec::new();
        for collection in store.all_collections(user).await? {
            let filter = DocumentFilter::Range {
                collection: collection.id,
                from: String::new(),
                before: None,
                most: most.saturating_sub(documents.len()),
            };
            let rows = store.documents(user, filter).await?;
            documents.extend(rows.into_iter().map(Document::from));
        }
        Ok(documents)
    }

    /// Forgets a user's document, by its id or the name of its source; a folder stands for all documents below it. Its
    /// text, its words and its vectors are gone afterwards, and wiped from the file.
    pub async fn forget(&self, user: &UserId, name: &str) -> Result<Forgotten, LibraryError> {
        let store = &self.store;
        let mut found = store
            .documents(user, DocumentFilter::Named(name.to_owned()))
            .await?;
        if found.is_empty()
            && let Ok(id) = name.parse()
        {
            found = store.documents(user, DocumentFilter::Id(id)).await?;
        }
        if found.is_empty() && name.contains('/') {
            found = self.below(user, name).await?;
        }
        if found.is_empty() {
            return Err(LibraryError::NoSuchDocument {
                name: name.to_owned(),
            });
        }
        let mut forgotten = Forgotten::default();
        for document in found {
            if let Some(chunks) = store
                .remove_document(user, document.id, Removal::Wiped)
                .await?
            {
                forgotten.documents += 1;
                forgotten.chunks += chunks;
            }
        }
        Ok(forgotten)
    }

    /// Makes the vectors that are missing, after dropping those of another maker. It can be broken off and goes on where
    /// it was. `progress` is told how many chunks are done.
    pub async fn reindex(
        &self,
        progress: &(dyn Fn(usize) + Send + Sync),
    ) -> Result<ReindexReport, LibraryError> {
        let embedder = self.embedder.as_ref().ok_or(LibraryError::NoEmbedder)?;
        let maker = embedder.maker().clone();
        let store = &self.store;
        store.begin_vectors(maker.clone()).await?;
        let mut report = ReindexReport::default();
        let mut after = -1;
        loop {
            let missing = store.without_vectors(after, VECTORS_AT_ONCE).await?;
            let Some((last, ..)) = missing.last() else {
                return Ok(report);
            };
            after = *last;
            let text = |(_, heading, text): &(i64, String, String)| embedded_text(heading, text);
            let texts = missing.iter().map(text).collect();
            let vectors = self
                .vectors(embedder.as_ref(), texts, EmbeddingPurpose::Document)
                .await?;
            let made: Vec<_> = missing.iter().map(|(id, ..)| *id).zip(vectors).collect();
            report.embedded += made.len();
            if let VectorOutcome::OtherMaker(stored) =
                store.set_vectors(maker.clone(), made).await?
            {
                return Err(LibraryError::other_maker(&stored, &maker));
            }
            progress(report.embedded);
        }
    }

    async fn below(&self, user: &UserId, folder: &str) -> Result<Vec<DocumentRow>, LibraryError> {
        let store = &self.store;
        let folder = folder.trim_end_matches('/');
        let mut found = Vec::new();
        for collection in store.all_collections(user).await? {
            let filter = DocumentFilter::Range {
                collection: collection.id,
                from: format!("{folder}/"),
                // What comes after `/`.
                before: Some(format!("{folder}0")),
                most: usize::MAX,
            };
            found.extend(store.documents(user, filter).await?);
        }
        Ok(found)
    }
}

impl From<DocumentRow> for Document {
    fn from(row: DocumentRow) -> Self {
        Self {
            id: row.id,
            collection: row.collection,
            session: row.session,
            source: row.source,
            title: row.title,
            size: row.size,
            added: row.added,
            chunks: row.chunks,
        }
    }
}
