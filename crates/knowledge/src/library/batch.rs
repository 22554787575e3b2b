//! Writing documents: many small ones in one change, a large one in many.

use super::chunk::Chunk;
use super::{Library, LibraryError, embedded_text};
use crate::words::telling_words;
use lango_core::{EmbeddingPurpose, UserId};
use lango_store::{DocumentPart, NewChunk, NewDocument, Removal, VectorOutcome};
use std::sync::Arc;

/// How many chunks one change writes. Turns wait behind it.
const CHUNKS_AT_ONCE: usize = 128;

/// How many documents.
const DOCUMENTS_AT_ONCE: usize = 64;

/// A document that is ready to be written.
pub(super) struct Prepared {
    document: Arc<NewDocument>,
    chunks: Vec<NewChunk>,
    /// The one that is there under its name.
    replaces: Option<i64>,
}

impl Prepared {
    /// A document with its chunks. Its title stands above their headings, if they do not begin with it.
    pub(super) fn new(
        document: NewDocument,
        title: String,
        chunks: Vec<Chunk>,
        replaces: Option<i64>,
    ) -> Self {
        let chunk = |chunk: Chunk| {
            let heading = match chunk.heading {
                // Where the title is the whole text, it would count twice.
                _ if chunk.text == title => String::new(),
                heading if heading.is_empty() => title.clone(),
                heading if heading.starts_with(&title) => heading,
                heading => format!("{title} > {heading}"),
            };
            NewChunk {
                words: telling_words(&heading) + telling_words(&chunk.text),
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

    /// The document as one part, for what is small by its nature.
    pub(super) fn into_part(self) -> DocumentPart {
        DocumentPart {
            document: self.document,
            before: 0,
            is_last: true,
            chunks: self.chunks,
        }
    }
}

/// Documents that wait to be written.
pub(super) struct Batch<'a> {
    library: &'a Library,
    user: &'a UserId,
    waiting: Vec<Prepared>,
    chunks: usize,
}

impl<'a> Batch<'a> {
    /// Nothing yet.
    pub(super) fn new(library: &'a Library, user: &'a UserId) -> Self {
        Self {
            library,
            user,
            waiting: Vec::new(),
            chunks: 0,
        }
    }

    /// Takes a document, and writes what waits if that is enough. Gives the number of chunks that were written.
    pub(super) async fn push(&mut self, prepared: Prepared) -> Result<usize, LibraryError> {
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

    /// Writes what waits.
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
                    .remove_document(self.user, old, Removal::Plain)
                    .await?;
            }
            parts.extend(cut(prepared));
        }
        self.chunks = 0;
        // Pieces of a large document are full; those of small ones fit into one change together.
        while !parts.is_empty() {
            let mut room = CHUNKS_AT_ONCE;
            let fits = parts.iter().take_while(|part: &&DocumentPart| {
                let fits = part.chunks.len() <= room;
                room = room.saturating_sub(part.chunks.len());
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
    /// Gives the chunks of parts their vectors, if there is an embedder.
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
        let maker = self.maker();
        match self.store.write_documents(parts, maker.clone()).await? {
            VectorOutcome::Done(()) => Ok(()),
            VectorOutcome::OtherMaker(stored) => {
                let configured = maker.unwrap_or_else(|| stored.clone());
                Err(LibraryError::other_maker(&stored, &configured))
            }
        }
    }
}

/// A document in parts of which each fits into one change.
fn cut(prepared: Prepared) -> Vec<DocumentPart> {
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
