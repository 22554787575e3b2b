//! What agents and people save: knowledge under a key, and learnings.
//!
//! Each is a document of a collection of its own, so that it is found as documents are.

use super::batch::Prepared;
use super::chunk::{Structure, chunks};
use super::search::{Hit, Mode, Query};
use super::{KNOWLEDGE, LEARNINGS, Library, LibraryError};
use lango_core::{SessionId, Source, Text, UserId};
use lango_store::{DocumentPart, KnowledgeRow, LearningRow, NewDocument, VectorOutcome};
use sha2::{Digest as _, Sha256};

/// How long the parts of an entry are at most, in bytes.
const LONGEST_NAME: usize = 200;
const LONGEST_CONTENT: usize = 32 * 1024;
const LONGEST_LINE: usize = 4096;

/// How many tags an entry has at most.
const MOST_TAGS: usize = 32;

/// Something to save under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// The key. What is saved under it again is a new version.
    pub key: String,
    /// What kind of thing it is.
    pub category: String,
    /// The thing.
    pub content: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Who says so.
    pub source: Source,
}

/// Something that was saved under a key; its newest version where it was searched for.
pub type Entry = KnowledgeRow;

/// Something to learn from.
#[derive(Debug, Clone, PartialEq)]
pub struct NewLearning {
    /// When to think of it.
    pub trigger: String,
    /// What helps.
    pub fix: String,
    /// What the error looks like; may be empty.
    pub error_pattern: String,
    /// From 0 to 1.
    pub confidence: f64,
    /// Who says so.
    pub source: Source,
}

/// Something that was learned.
pub type Learning = LearningRow;

/// What became of saving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The version; always 1 for a learning.
    pub version: u64,
    /// Whether it is new: the same said again is not.
    pub is_new: bool,
    /// What the reader has to know.
    pub notes: Vec<String>,
}

impl Library {
    /// Saves something under a key, as a new version if it differs from the newest.
    pub async fn save(&self, user: &UserId, entry: NewEntry) -> Result<Saved, LibraryError> {
        check("key", &entry.key, 1, LONGEST_NAME)?;
        check("category", &entry.category, 0, LONGEST_NAME)?;
        check("content", &entry.content, 1, LONGEST_CONTENT)?;
        for tag in &entry.tags {
            check("tags", tag, 1, LONGEST_NAME)?;
        }
        if entry.tags.len() > MOST_TAGS {
            return Err(unusable(format!("there are more than {MOST_TAGS} `tags`")));
        }
        let title = format!("{} {} {}", entry.key, entry.category, entry.tags.join(" "));
        let document = Saving {
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
            .save_knowledge(user, row.clone(), part.clone(), self.maker())
            .await?;
        let ((version, is_new), notes) = match stored {
            VectorOutcome::Done(saved) => (saved, notes),
            // The maker changed since the vectors were made: saved without them.
            VectorOutcome::OtherMaker(_) => {
                let stored = store
                    .save_knowledge(user, row, without_vectors(part), None)
                    .await?;
                (done(stored)?, vec![NO_VECTORS.to_owned()])
            }
        };
        Ok(Saved {
            version,
            is_new,
            notes,
        })
    }

    /// All versions that were saved under a key, the newest first, at most so many.
    pub async fn versions(
        &self,
        user: &UserId,
        key: &str,
        most: usize,
    ) -> Result<Vec<Entry>, LibraryError> {
        Ok(self.store.knowledge_versions(user, key, most).await?)
    }

    /// The saved knowledge that fits best, with notes.
    pub async fn search_entries(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        text: &str,
        limit: usize,
    ) -> Result<(Vec<Entry>, Vec<String>), LibraryError> {
        let (hits, notes) = self
            .documents_of(user, session, KNOWLEDGE, text, limit)
            .await?;
        let rows = self.store.knowledge(user, hits).await?;
        Ok((rows.into_iter().flatten().collect(), notes))
    }

    /// Saves a learning. One with the same trigger and fix is brought up to date.
    pub async fn learn(&self, user: &UserId, new: NewLearning) -> Result<Saved, LibraryError> {
        check("trigger", &new.trigger, 1, LONGEST_LINE)?;
        check("fix", &new.fix, 1, LONGEST_CONTENT)?;
        check("error_pattern", &new.error_pattern, 0, LONGEST_LINE)?;
        if !(0.0..=1.0).contains(&new.confidence) {
            return Err(unusable("`confidence` is not between 0 and 1".to_owned()));
        }
        let content = format!("{}\n\n{}\n\n{}", new.trigger, new.error_pattern, new.fix);
        let hash = Sha256::digest(format!("{}\0{}", new.trigger, new.fix));
        let name: String = hash
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let document = Saving {
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
            .save_learning(user, row.clone(), part.clone(), self.maker())
            .await?;
        let (is_new, notes) = match stored {
            VectorOutcome::Done(is_new) => (is_new, notes),
            VectorOutcome::OtherMaker(_) => {
                let stored = store
                    .save_learning(user, row, without_vectors(part), None)
                    .await?;
                (done(stored)?, vec![NO_VECTORS.to_owned()])
            }
        };
        Ok(Saved {
            version: 1,
            is_new,
            notes,
        })
    }

    /// The learnings that fit best, with notes.
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

    /// The documents of a collection that fit best, each once.
    async fn documents_of(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        collection: &str,
        text: &str,
        limit: usize,
    ) -> Result<(Vec<i64>, Vec<String>), LibraryError> {
        let query = Query {
            text: text.to_owned(),
            // A long entry has several chunks, and all of them may be hits.
            limit: limit.saturating_mul(4),
            collections: vec![collection.to_owned()],
            mode: Mode::Fused,
        };
        let mut results = self.search(user, session, &query).await?;
        // Before anything was saved there is no collection, which is nobody's concern.
        results
            .notes
            .retain(|note| !note.starts_with("there is no collection"));
        let mut documents: Vec<i64> = Vec::new();
        for Hit { document, .. } in results.hits {
            if !documents.contains(&document) && documents.len() < limit {
                documents.push(document);
            }
        }
        Ok((documents, results.notes))
    }

    /// What is saved as a document, with its vectors if they can be made.
    async fn part(
        &self,
        user: &UserId,
        saving: Saving<'_>,
    ) -> Result<(DocumentPart, Vec<String>), LibraryError> {
        let collection = self.store.collection(user, saving.collection, None).await?;
        let document = NewDocument {
            collection,
            source: Source {
                name: saving.name.into(),
                trust: saving.source.trust,
            },
            title: saving.title.as_str().into(),
            hash: Sha256::digest(saving.content).into(),
            size: saving.content.len() as u64,
            added: self.clock.now(),
        };
        let chunks = chunks(saving.content, Structure::Markdown);
        let mut parts = [Prepared::new(document, saving.title, chunks, None).into_part()];
        let mut notes = Vec::new();
        // What is worth saving is worth saving without a vector.
        if let Err(error) = self.embed_parts(&mut parts).await {
            notes.push(format!("saved without a vector: {error}"));
        }
        let [part] = parts;
        Ok((part, notes))
    }
}

const NO_VECTORS: &str = "saved without a vector, because the vectors of the library are of another maker; reindex the library";

struct Saving<'a> {
    collection: &'static str,
    name: String,
    title: String,
    content: &'a str,
    source: &'a Source,
}

fn without_vectors(mut part: DocumentPart) -> DocumentPart {
    part.chunks.iter_mut().for_each(|chunk| chunk.vector = None);
    part
}

fn done<T>(stored: VectorOutcome<T>) -> Result<T, LibraryError> {
    match stored {
        VectorOutcome::Done(value) => Ok(value),
        VectorOutcome::OtherMaker(_) => Err(LibraryError::NoEmbedder),
    }
}

fn check(name: &str, text: &str, shortest: usize, longest: usize) -> Result<(), LibraryError> {
    if text.trim().len() < shortest {
        return Err(unusable(format!("`{name}` is empty")));
    }
    if text.len() > longest {
        return Err(unusable(format!(
            "`{name}` is longer than {longest} bytes; save less of it"
        )));
    }
    Ok(())
}

fn unusable(problem: String) -> LibraryError {
    LibraryError::Unusable { problem }
}
