//! What agents and users save: knowledge under a key, and learnings.
//!
//! Each entry is a document in a separate collection, so it can be found like other documents.

use super::batch::PreparedDocument;
use super::chunk::{Structure, chunks};
use super::search::{LibraryHit, LibraryQuery, LibrarySearchMode};
use super::{KNOWLEDGE, LEARNINGS, Library, LibraryError};
use lango_core::{Provenance, SessionId, Text, UserId};
use lango_store::{DocumentPart, KnowledgeRow, LearningRow, NewDocument, VectorOutcome};
use sha2::{Digest as _, Sha256};

/// Maximum length of a key, category or tag in bytes.
const MAX_NAME: usize = 200;
/// Maximum length of a content or fix in bytes.
const MAX_CONTENT: usize = 32 * 1024;
/// Maximum length of a trigger or error pattern in bytes.
const MAX_LINE: usize = 4096;

/// Maximum number of tags per entry.
const MAX_TAGS: usize = 32;

/// Knowledge to save under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKnowledge {
    /// The key. Saving under it again creates a new version.
    pub key: String,
    pub category: String,
    pub content: String,
    /// Keywords to find it by.
    pub tags: Vec<String>,
    pub source: Provenance,
}

/// Saved knowledge; a search returns its newest version.
pub type KnowledgeEntry = KnowledgeRow;

/// A learning to save.
#[derive(Debug, Clone, PartialEq)]
pub struct NewLearning {
    /// When it applies.
    pub trigger: String,
    pub fix: String,
    /// What the error looks like; may be empty.
    pub error_pattern: String,
    /// From 0 to 1.
    pub confidence: f64,
    pub source: Provenance,
}

/// A saved learning.
pub type Learning = LearningRow;

/// The result of saving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveReport {
    /// The version; always 1 for a learning.
    pub version: u64,
    /// False if the same entry was saved before.
    pub is_new: bool,
    /// Notes for the caller.
    pub notes: Vec<String>,
}

impl Library {
    /// Saves knowledge under a key, as a new version if it differs from the newest.
    pub async fn save(
        &self,
        user: &UserId,
        entry: NewKnowledge,
    ) -> Result<SaveReport, LibraryError> {
        check("key", &entry.key, 1, MAX_NAME)?;
        check("category", &entry.category, 0, MAX_NAME)?;
        check("content", &entry.content, 1, MAX_CONTENT)?;
        for tag in &entry.tags {
            check("tags", tag, 1, MAX_NAME)?;
        }
        if entry.tags.len() > MAX_TAGS {
            return Err(unusable(format!("there are more than {MAX_TAGS} `tags`")));
        }
        let title = format!("{} {} {}", entry.key, entry.category, entry.tags.join(" "));
        let document = EntryDocument {
            collection: KNOWLEDGE,
            name: format!("knowledge/{}", entry.key),
            title,
            content: &entry.content,
            source: &entry.source,
        };
        let (part, notes) = self.part(user, document).await?;
        let text = |text: &String| Text::from(text.as_str());
        let row = KnowledgeRow {
            key: text(&entry.key),
            version: 0,
            category: text(&entry.category),
            content: text(&entry.content),
            tags: entry.tags.iter().map(text).collect(),
            source: entry.source,
            saved: self.clock.now(),
        };
        let store = &self.store;
        let stored = store
            .save_knowledge(user, row.clone(), part.clone(), self.embedding_model())
            .await?;
        let ((version, is_new), notes) = match stored {
            VectorOutcome::Done(saved) => (saved, notes),
            // The embedding model of the library changed after the vectors were computed, so save without them.
            VectorOutcome::OtherModel(_) => {
                let stored = store
                    .save_knowledge(user, row, chunks_without_vectors(part), None)
                    .await?;
                (done(stored)?, vec![NO_VECTORS.to_owned()])
            }
        };
        Ok(SaveReport {
            version,
            is_new,
            notes,
        })
    }

    /// Returns the versions saved under a key, the newest first.
    pub async fn versions(
        &self,
        user: &UserId,
        key: &str,
        most: usize,
    ) -> Result<Vec<KnowledgeEntry>, LibraryError> {
        Ok(self.store.knowledge_versions(user, key, most).await?)
    }

    /// Searches the saved knowledge. Returns the best entries, and notes.
    pub async fn search_entries(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        text: &str,
        limit: usize,
    ) -> Result<(Vec<KnowledgeEntry>, Vec<String>), LibraryError> {
        let (hits, notes) = self
            .documents_of(user, session, KNOWLEDGE, text, limit)
            .await?;
        let rows = self.store.knowledge(user, hits).await?;
        Ok((rows.into_iter().flatten().collect(), notes))
    }

    /// Saves a learning, or updates the one with the same trigger and fix.
    pub async fn learn(&self, user: &UserId, new: NewLearning) -> Result<SaveReport, LibraryError> {
        check("trigger", &new.trigger, 1, MAX_LINE)?;
        check("fix", &new.fix, 1, MAX_CONTENT)?;
        check("error_pattern", &new.error_pattern, 0, MAX_LINE)?;
        if !(0.0..=1.0).contains(&new.confidence) {
            return Err(unusable("`confidence` must be between 0 and 1".to_owned()));
        }
        let content = format!("{}\n\n{}\n\n{}", new.trigger, new.error_pattern, new.fix);
        let hash = Sha256::digest(format!("{}\0{}", new.trigger, new.fix));
        let name = base16ct::lower::encode_string(&hash[..8]);
        let document = EntryDocument {
            collection: LEARNINGS,
            name: format!("learning/{name}"),
            title: "learning".to_owned(),
            content: &content,
            source: &new.source,
        };
        let (part, notes) = self.part(user, document).await?;
        let row = LearningRow {
            trigger: new.trigger.into(),
            fix: new.fix.into(),
            error_pattern: new.error_pattern.into(),
            confidence: new.confidence,
            source: new.source,
            saved: self.clock.now(),
        };
        let store = &self.store;
        let stored = store
            .save_learning(user, row.clone(), part.clone(), self.embedding_model())
            .await?;
        let (is_new, notes) = match stored {
            VectorOutcome::Done(is_new) => (is_new, notes),
            VectorOutcome::OtherModel(_) => {
                let stored = store
                    .save_learning(user, row, chunks_without_vectors(part), None)
                    .await?;
                (done(stored)?, vec![NO_VECTORS.to_owned()])
            }
        };
        Ok(SaveReport {
            version: 1,
            is_new,
            notes,
        })
    }

    /// Searches the learnings. Returns the best ones, and notes.
    pub async fn search_learnings(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        text: &str,
        limit: usize,
    ) -> Result<(Vec<Learning>, Vec<String>), LibraryError> {
        let (hits, notes) = self
            .documents_of(user, session, LEARNINGS, text, limit)
            .await?;
        let rows = self.store.learnings(user, hits).await?;
        Ok((rows.into_iter().flatten().collect(), notes))
    }

    /// Returns the ids of the documents of a collection that match best, each once, and notes.
    async fn documents_of(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        collection: &str,
        text: &str,
        limit: usize,
    ) -> Result<(Vec<i64>, Vec<String>), LibraryError> {
        let query = LibraryQuery {
            text: text.to_owned(),
            // A long entry has several chunks, and all of them may be hits.
            limit: limit.saturating_mul(4),
            collections: vec![collection.to_owned()],
            mode: LibrarySearchMode::Fused,
        };
        let mut results = self.search(user, session, &query).await?;
        // The collection does not exist before the first save, which the caller need not know.
        results
            .notes
            .retain(|note| !note.starts_with("there is no collection"));
        let mut documents: Vec<i64> = Vec::new();
        for LibraryHit { document, .. } in results.hits {
            if !documents.contains(&document) && documents.len() < limit {
                documents.push(document);
            }
        }
        Ok((documents, results.notes))
    }

    /// Converts an entry to a document, with its vectors if they can be computed. Returns notes too.
    async fn part(
        &self,
        user: &UserId,
        entry: EntryDocument<'_>,
    ) -> Result<(DocumentPart, Vec<String>), LibraryError> {
        let collection = self.store.collection(user, entry.collection, None).await?;
        let document = NewDocument {
            collection,
            source: Provenance {
                name: entry.name.into(),
                trust: entry.source.trust,
            },
            title: entry.title.as_str().into(),
            hash: Sha256::digest(entry.content).into(),
            size: entry.content.len() as u64,
            added: self.clock.now(),
        };
        let chunks = chunks(entry.content, Structure::Markdown);
        let mut parts = [PreparedDocument::new(document, entry.title, chunks, None).into_part()];
        let mut notes = Vec::new();
        // Save the entry even if its vector cannot be computed.
        if let Err(error) = self.embed_parts(&mut parts).await {
            notes.push(format!("saved without a vector: {error}"));
        }
        let [part] = parts;
        Ok((part, notes))
    }
}

const NO_VECTORS: &str = "saved without a vector, because the vectors of the library come from another embedding model; \
    reindex the library";

struct EntryDocument<'a> {
    collection: &'static str,
    name: String,
    title: String,
    content: &'a str,
    source: &'a Provenance,
}

fn chunks_without_vectors(mut part: DocumentPart) -> DocumentPart {
    part.chunks.iter_mut().for_each(|chunk| chunk.vector = None);
    part
}

fn done<T>(stored: VectorOutcome<T>) -> Result<T, LibraryError> {
    match stored {
        VectorOutcome::Done(value) => Ok(value),
        VectorOutcome::OtherModel(_) => Err(LibraryError::NoEmbedder),
    }
}

fn check(name: &str, text: &str, min_bytes: usize, max_bytes: usize) -> Result<(), LibraryError> {
    if text.trim().len() < min_bytes {
        return Err(unusable(format!("`{name}` is empty")));
    }
    if text.len() > max_bytes {
        return Err(unusable(format!(
            "`{name}` is longer than {max_bytes} bytes; shorten it"
        )));
    }
    Ok(())
}

fn unusable(problem: String) -> LibraryError {
    LibraryError::Unusable { problem }
}
