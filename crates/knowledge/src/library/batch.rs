//! Writes documents: many small ones in one transaction, a large one in several.

use super::chunk::Chunk;
use super::{Library, LibraryError, embedded_text};
use crate::words::content_word_count;
use lango_core::{EmbeddingPurpose, UserId};
use lango_store::{DeleteMode, DocumentPart, NewChunk, NewDocument, VectorOutcome};
use std::sync::Arc;

/// Maximum number of chunks per transaction. Turns have to wait while a transaction runs.
const CHUNKS_AT_ONCE: usize = 128;

/// Maximum number of documents per transaction.
const DOCUMENTS_AT_ONCE: usize = 64;

/// A document that is ready to be written.
pub(super) struct PreparedDocument {
    document: Arc<NewDocument>,
    chunks: Vec<NewChunk>,
    /// The stored document with the same source.
    replaces: Option<i64>,
}

impl PreparedDocument {
    /// Prepares a document with its chunks. Prepends the title to headings that do not start with it.
    pub(super) fn new(
        document: NewDocument,
        title: String,
        chunks: Vec<Chunk>,
        replaces: Option<i64>,
    ) -> Self {
        let chunk = |chunk: Chunk| {
            let heading = match chunk.heading {
                // If the title is the whole text, it would count twice.
                _ if chunk.text == title => String::new(),
                heading if heading.is_empty() => title.clone(),
                heading if heading.starts_with(&title) => heading,
                heading => format!("{title} > {heading}"),
            };
            NewChunk {
                words: content_word_count(&heading) + content_word_count(&chunk.text),
                heading,
                text: chunk.text,
                position: chunk.line,
                vector: None,
            }
        };
        Self {
            chunks: chunks.into_iter().map(chunk).collect(),
            document: Arc::new(document),
            replaces,
        }
    }

    /// Converts the document to a single part. Only for documents that are always small.
    pub(super) fn into_part(self) -> DocumentPart {
        DocumentPart {
            document: self.document,
            before: 0,
            is_last: true,
            chunks: self.chunks,
        }
    }
}

/// Documents to be written.
pub(super) struct Batch<'a> {
    library: &'a Library,
    user: &'a UserId,
    waiting: Vec<PreparedDocument>,
    chunks: usize,
}

impl<'a> Batch<'a> {
    pub(super) fn new(library: &'a Library, user: &'a UserId) -> Self {
        Self {
            library,
            user,
            waiting: Vec::new(),
            chunks: 0,
        }
    }

    /// Adds a document, and writes the batch if it is full. Returns the number of chunks written.
    pub(super) async fn push(&mut self, prepared: PreparedDocument) -> Result<usize, LibraryError> {
        let mut written = 0;
        if self.chunks + prepared.chunks.len() > CHUNKS_AT_ONCE {
            written = self.write().await?;
        }
        self.chunks += prepared.chunks.len();
        self.waiting.push(prepared);
        if self.chunks > CHUNKS_AT_ONCE || self.waiting.len() == DOCUMENTS_AT_ONCE {
            written += self.write().await?;
        }
        Ok(written)
    }

    /// Writes the remaining documents. Returns the number of chunks written.
    pub(super) async fn finish(mut self) -> Result<usize, LibraryError> {
        self.write().await
    }

    async fn write(&mut self) -> Result<usize, LibraryError> {
        let store = &self.library.store;
        let mut written = 0;
        let mut parts = Vec::new();
        for prepared in std::mem::take(&mut self.waiting) {
            if let Some(old) = prepared.replaces {
                store
                    .remove_document(self.user, old, DeleteMode::Normal)
                    .await?;
            }
            parts.extend(cut(prepared));
        }
        self.chunks = 0;
        // The parts of a large document fill a transaction each; those of small documents share one.
        while !parts.is_empty() {
            let mut space = CHUNKS_AT_ONCE;
            let fits = parts.iter().take_while(|part: &&DocumentPart| {
                let fits = part.chunks.len() <= space;
                space = space.saturating_sub(part.chunks.len());
                fits
            });
            let number = fits.count().max(1);
            let mut now: Vec<DocumentPart> = parts.drain(..number).collect();
            written += now.iter().map(|part| part.chunks.len()).sum::<usize>();
            self.library.embed_parts(&mut now).await?;
            self.library.write_parts(now).await?;
        }
        Ok(written)
    }
}

impl Library {
    /// Computes the vectors of all chunks, if there is an embedder.
    pub(super) async fn embed_parts(&self, parts: &mut [DocumentPart]) -> Result<(), LibraryError> {
        let Some(embedder) = &self.embedder else {
            return Ok(());
        };
        let chunks = parts.iter().flat_map(|part| &part.chunks);
        let texts = chunks
            .map(|chunk| embedded_text(&chunk.heading, &chunk.text))
            .collect();
        let vectors = self
            .vectors(embedder.as_ref(), texts, EmbeddingPurpose::Document)
            .await?;
        let chunks = parts.iter_mut().flat_map(|part| &mut part.chunks);
        for (chunk, vector) in chunks.zip(vectors) {
            chunk.vector = Some(vector);
        }
        Ok(())
    }

    async fn write_parts(&self, parts: Vec<DocumentPart>) -> Result<(), LibraryError> {
        let embedding_model = self.embedding_model();
        match self
            .store
            .write_documents(parts, embedding_model.clone())
            .await?
        {
            VectorOutcome::Done(()) => Ok(()),
            VectorOutcome::OtherModel(stored) => {
                let configured = embedding_model.unwrap_or_else(|| stored.clone());
                Err(LibraryError::other_embedding_model(&stored, &configured))
            }
        }
    }
}

/// Splits a document into parts that fit into one transaction each.
fn cut(prepared: PreparedDocument) -> Vec<DocumentPart> {
    let total = prepared.chunks.len();
    let mut chunks = prepared.chunks.into_iter();
    let mut parts = Vec::new();
    let mut before = 0;
    loop {
        let some: Vec<NewChunk> = chunks.by_ref().take(CHUNKS_AT_ONCE).collect();
        let end = before + some.len();
        parts.push(DocumentPart {
            document: Arc::clone(&prepared.document),
            before: before as u64,
            is_last: end == total,
            chunks: some,
        });
        if end == total {
            return parts;
        }
        before = end;
    }
}
