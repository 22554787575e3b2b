//! Search by words, by vectors, or by both.
//!
//! Any text is a valid query. If vectors cannot be used, a fused search uses only words and says so in a note.

use super::fuse::{Scale, WeightedRanking, fuse};
use super::snippet::snippet;
use super::spelling::has_similar_word;
use super::{LEARNINGS, Library, LibraryError};
use crate::words::{MAX_QUERY_BYTES, query_words, start_of};
use futures_util::future::join;
use lango_core::{Embedder, EmbeddingModel, EmbeddingPurpose, Provenance, SessionId, Text, UserId};
use lango_store::{CollectionId, CollectionRow, QueryWord, Ranking, SearchHit, VectorOutcome};
use std::collections::HashSet;

/// Maximum number of hits per search.
const MAX_HITS: usize = 1000;

/// Minimum number of hits to request from each ranking before fusing them.
const MIN_FUSED: usize = 100;

/// Maximum number of collections per search.
const MAX_COLLECTIONS: usize = 256;

/// The weight of the offline embedder's vectors relative to the words. They capture spelling but no meaning, so they
/// add little if the library contains all words of the query.
const OFFLINE_WEIGHT: f64 = 0.3;
/// The additional weight if the library contains none of the query's words.
const OFFLINE_WEIGHT_UNKNOWN: f64 = 0.9;

/// The least similarity of a hit that only the offline embedder has, unless a word of it is spelled like one of the query.
/// Below it, two texts share mostly pieces of words by chance. In the Cranfield collection, every relevant document among the first ten has at least 0.128; with queries about
/// other topics, at most 2 % of the documents have 0.1.
const OFFLINE_MIN_SIMILARITY: f64 = 0.1;

/// A query to the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryQuery {
    /// Any text.
    pub text: String,
    /// The number of hits, at most 1000.
    pub limit: usize,
    /// The names of the collections; empty means all visible ones except `learnings`.
    pub collections: Vec<String>,
    pub mode: LibrarySearchMode,
}

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LibrarySearchMode {
    /// By words and vectors, fused; only by words if there are no vectors.
    #[default]
    Fused,
    /// By words.
    Lexical,
    /// By vectors.
    Vector,
}

/// The results of a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LibraryResults {
    /// The best first.
    pub hits: Vec<LibraryHit>,
    /// What could not be searched, and why.
    pub notes: Vec<String>,
}

/// A chunk that matches a query.
#[derive(Debug, Clone, PartialEq)]
pub struct LibraryHit {
    /// The id of the chunk.
    pub id: i64,
    /// The id of its document.
    pub document: i64,
    pub collection: Text,
    /// Higher is better. Comparable only within one search.
    pub score: f64,
    /// Its source and trust label.
    pub source: Provenance,
    /// The title of its document.
    pub title: Text,
    /// The headings above it.
    pub heading: Text,
    /// The passage that matches best.
    pub snippet: String,
    /// The whole chunk.
    pub text: Text,
    /// The line, or the page of a PDF, where it starts.
    pub position: u64,
}

impl Library {
    /// Searches the part of a user's library that is visible in a session.
    pub async fn search(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        query: &LibraryQuery,
    ) -> Result<LibraryResults, LibraryError> {
        let (seen, embedding_model) = self.store.visible_collections(user, session).await?;
        let (seen, mut notes) = chosen(seen, &query.collections);
        let limit = query.limit.min(MAX_HITS);
        let words = query_words(&query.text);
        let plan = SearchPlan {
            library: self,
            collections: seen.iter().map(|collection| collection.id).collect(),
            embedding_model,
            depth: limit.max(MIN_FUSED),
        };
        let mut doubtful = HashSet::new();
        let ranking = match query.mode {
            LibrarySearchMode::Lexical => plan.lexical(&words).await?.hits,
            LibrarySearchMode::Vector => {
                let embedder = self.embedder.as_deref().ok_or(LibraryError::NoEmbedder)?;
                notes.extend(missing_note(&seen));
                let nearest = plan.nearest(embedder, &query.text).await?;
                doubtful = plan.doubtful(&nearest, &[]);
                nearest
            }
            LibrarySearchMode::Fused => {
                let nearest = plan.nearest_if_possible(&query.text);
                let (lexical, nearest) = join(plan.lexical(&words), nearest).await;
                let lexical = lexical?;
                match nearest {
                    None => lexical.hits,
                    Some(Ok(nearest)) => {
                        notes.extend(missing_note(&seen));
                        doubtful = plan.doubtful(&nearest, &lexical.hits);
                        plan.fused(&lexical, words.len(), &nearest)
                    }
                    Some(Err(error)) => {
                        notes.push(format!("searched only by words: {error}"));
                        lexical.hits
                    }
                }
            }
        };
        let ranking = &ranking[..ranking.len().min(limit)];
        let found = self
            .store
            .chunks(ranking.iter().map(|(id, _)| *id).collect())
            .await?;
        let is_plausible = |found: &SearchHit| {
            !doubtful.contains(&found.id)
                || has_similar_word(&found.heading, &words)
                || has_similar_word(&found.text, &words)
        };
        let hits = found.into_iter().filter(is_plausible).map(|found| {
            let score = ranking.iter().find(|(id, _)| *id == found.id);
            hit(found, score.map_or(0.0, |(_, score)| *score), &words)
        });
        Ok(LibraryResults {
            hits: hits.collect(),
            notes,
        })
    }
}

/// Chunk ids with their similarity, the nearest first.
type Nearest = Vec<(i64, f64)>;

/// A search in progress.
struct SearchPlan<'a> {
    library: &'a Library,
    collections: Vec<CollectionId>,
    /// The embedding model of the stored vectors.
    embedding_model: Option<EmbeddingModel>,
    depth: usize,
}

impl SearchPlan<'_> {
    async fn lexical(&self, words: &[QueryWord]) -> Result<Ranking, LibraryError> {
        if words.is_empty() || self.collections.is_empty() {
            return Ok(Ranking::default());
        }
        let store = &self.library.store;
        let (collections, words) = (self.collections.clone(), words.to_vec());
        Ok(store.search_words(collections, words, self.depth).await?)
    }

    async fn nearest(&self, embedder: &dyn Embedder, text: &str) -> Result<Nearest, LibraryError> {
        if let Some(stored) = &self.embedding_model
            && stored != embedder.model()
        {
            return Err(LibraryError::other_embedding_model(
                stored,
                embedder.model(),
            ));
        }
        let text = start_of(text, MAX_QUERY_BYTES).to_owned();
        if text.trim().is_empty() || self.collections.is_empty() {
            return Ok(Vec::new());
        }
        let purpose = EmbeddingPurpose::Query;
        let mut vectors = self.library.vectors(embedder, vec![text], purpose).await?;
        let vector = vectors.pop().unwrap_or_default();
        if vector.iter().all(|number| *number == 0.0) {
            return Ok(Vec::new());
        }
        let store = &self.library.store;
        let (collections, embedding_model) = (self.collections.clone(), embedder.model().clone());
        match store
            .search_vectors(collections, embedding_model, vector, self.depth)
            .await?
        {
            VectorOutcome::Done(nearest) => Ok(nearest),
            VectorOutcome::OtherModel(stored) => Err(LibraryError::other_embedding_model(
                &stored,
                embedder.model(),
            )),
        }
    }

    /// Searches by vectors; `None` if there is no embedder.
    async fn nearest_if_possible(&self, text: &str) -> Option<Result<Nearest, LibraryError>> {
        let embedder = self.library.embedder.as_deref()?;
        Some(self.nearest(embedder, text).await)
    }

    /// Returns the hits that may be near only by chance: those of the offline embedder with a low similarity that do not
    /// match by words.
    fn doubtful(&self, nearest: &[(i64, f64)], lexical: &[(i64, f64)]) -> HashSet<i64> {
        if !self.has_offline_vectors() {
            return HashSet::new();
        }
        let lexical: HashSet<i64> = lexical.iter().map(|(id, _)| *id).collect();
        let doubtful = nearest.iter().filter(|(id, similarity)| {
            *similarity < OFFLINE_MIN_SIMILARITY && !lexical.contains(id)
        });
        doubtful.map(|(id, _)| *id).collect()
    }

    /// Whether similarities come from the offline embedder. Those of other embedding models have no common scale.
    fn has_offline_vectors(&self) -> bool {
        let embedding_model = self.library.embedding_model();
        embedding_model.is_some_and(|embedding_model| &*embedding_model.provider == "offline")
    }

    fn fused(&self, lexical: &Ranking, words: usize, nearest: &[(i64, f64)]) -> Vec<(i64, f64)> {
        let (scale, weight) = if self.has_offline_vectors() {
            let unknown = lexical.unknown as f64 / words.max(1) as f64;
            let weight = OFFLINE_WEIGHT + OFFLINE_WEIGHT_UNKNOWN * unknown;
            (Scale::ShareOfBest, weight)
        } else {
            (Scale::Rank, 1.0)
        };
        let rankings = [
            WeightedRanking {
                hits: &lexical.hits,
                weight: 1.0,
            },
            WeightedRanking {
                hits: nearest,
                weight,
            },
        ];
        fuse(&rankings, scale, self.depth)
    }
}

/// Selects the collections to search. Returns notes about names that do not exist and collections beyond the limit.
fn chosen(mut seen: Vec<CollectionRow>, names: &[String]) -> (Vec<CollectionRow>, Vec<String>) {
    let mut notes = Vec::new();
    for name in names {
        if !seen.iter().any(|collection| *collection.name == **name) {
            let shown = start_of(name, 100);
            notes.push(format!("there is no collection `{shown}`"));
        }
    }
    seen.retain(|collection| {
        let is_named = names.iter().any(|name| *collection.name == **name);
        is_named || (names.is_empty() && &*collection.name != LEARNINGS)
    });
    if seen.len() > MAX_COLLECTIONS {
        notes.push(format!(
            "only {MAX_COLLECTIONS} of {} collections were searched; name those to search",
            seen.len()
        ));
        seen.truncate(MAX_COLLECTIONS);
    }
    (seen, notes)
}

/// Returns a note if some chunks have no vector.
fn missing_note(seen: &[CollectionRow]) -> Option<String> {
    let missing: u64 = seen
        .iter()
        .map(|collection| collection.chunks.saturating_sub(collection.vectors))
        .sum();
    (missing > 0).then(|| {
        format!("{missing} passages have no vector yet and are found only by their words; reindex the library")
    })
}

fn hit(found: SearchHit, score: f64, words: &[QueryWord]) -> LibraryHit {
    LibraryHit {
        id: found.id,
        document: found.document,
        collection: found.collection,
        score,
        source: found.source,
        title: found.title,
        heading: found.heading,
        snippet: snippet(&found.text, words),
        text: found.text,
        position: found.position,
    }
}
