//! Lists and deletes documents, and recomputes the vectors.

use super::{Library, LibraryError, embedded_text};
use lango_core::{EmbeddingPurpose, Provenance, SessionId, Text, Timestamp, UserId};
use lango_store::{DeleteMode, DocumentFilter, DocumentRow, VectorOutcome};

/// Maximum number of chunks that get their vectors per transaction.
const VECTORS_AT_ONCE: usize = 128;

/// A document of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryDocument {
    pub id: i64,
    pub collection: Text,
    /// The only session that sees it; `None` means all.
    pub session: Option<SessionId>,
    /// Its source and trust label.
    pub source: Provenance,
    pub title: Text,
    /// The size of its file in bytes.
    pub size: u64,
    pub added: Timestamp,
    /// The number of its chunks.
    pub chunks: u64,
}

/// The number of deleted documents and chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeleteReport {
    pub documents: usize,
    pub chunks: u64,
}

/// The result of [`Library::reindex`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReindexReport {
    /// The number of chunks that got a vector.
    pub embedded: usize,
}

impl Library {
    /// Lists a user's documents of all sessions, by collection and name.
    pub async fn list(
        &self,
        user: &UserId,
        limit: usize,
    ) -> Result<Vec<LibraryDocument>, LibraryError> {
        let store = &self.store;
        let mut documents = Vec::new();
        for collection in store.all_collections(user).await? {
            let filter = DocumentFilter::Range {
                collection: collection.id,
                from: String::new(),
                before: None,
                limit: limit.saturating_sub(documents.len()),
            };
            let rows = store.documents(user, filter).await?;
            documents.extend(rows.into_iter().map(LibraryDocument::from));
        }
        Ok(documents)
    }

    /// Deletes a user's document, by its id or the name of its source; a folder means all documents below it. The text,
    /// the index entries and the vectors are overwritten in the database file.
    pub async fn forget(&self, user: &UserId, name: &str) -> Result<DeleteReport, LibraryError> {
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
        let mut report = DeleteReport::default();
        for document in found {
            if let Some(chunks) = store
                .remove_document(user, document.id, DeleteMode::Overwrite)
                .await?
            {
                report.documents += 1;
                report.chunks += chunks;
            }
        }
        Ok(report)
    }

    /// Deletes the vectors of other embedding models and computes all missing ones. After an interruption, the next
    /// call continues where this one stopped. Calls `progress` with the number of finished chunks.
    pub async fn reindex(
        &self,
        progress: &(dyn Fn(usize) + Send + Sync),
    ) -> Result<ReindexReport, LibraryError> {
        let embedder = self.embedder.as_ref().ok_or(LibraryError::NoEmbedder)?;
        let embedding_model = embedder.model().clone();
        let store = &self.store;
        store.set_vector_model(embedding_model.clone()).await?;
        let mut report = ReindexReport::default();
        let mut after = -1;
        loop {
            let missing = store.chunks_without_vectors(after, VECTORS_AT_ONCE).await?;
            let Some((last, ..)) = missing.last() else {
                return Ok(report);
            };
            after = *last;
            let text = |(_, heading, text): &(i64, String, String)| embedded_text(heading, text);
            let texts = missing.iter().map(text).collect();
            let vectors = self
                .vectors(embedder.as_ref(), texts, EmbeddingPurpose::Document)
                .await?;
            let embedded: Vec<_> = missing.iter().map(|(id, ..)| *id).zip(vectors).collect();
            report.embedded += embedded.len();
            if let VectorOutcome::OtherModel(stored) =
                store.set_vectors(embedding_model.clone(), embedded).await?
            {
                return Err(LibraryError::other_embedding_model(
                    &stored,
                    &embedding_model,
                ));
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
                // The character after `/`.
                before: Some(format!("{folder}0")),
                limit: usize::MAX,
            };
            found.extend(store.documents(user, filter).await?);
        }
        Ok(found)
    }
}

impl From<DocumentRow> for LibraryDocument {
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
