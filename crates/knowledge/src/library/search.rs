//! Search: by words, by vectors, or both joined.
//!
//! It never fails because of what is asked: any text is a question, if only one with no answer. Where vectors cannot be
//! used, a joined search goes by words alone and says so in a note.

use super::fuse::{Scale, WeightedRanking, fuse};
use super::snippet::snippet;
use super::{LEARNINGS, Library, LibraryError};
use crate::words::{MOST_QUERY_BYTES, query_words, start_of};
use futures_util::future::join;
use lango_core::{Embedder, EmbeddingMaker, EmbeddingPurpose, SessionId, Source, Text, UserId};
use lango_store::{CollectionId, CollectionRow, QueryWord, Ranking, SearchHit, VectorOutcome};

/// How many hits one search gives at most.
const MOST_HITS: usize = 1000;

/// How many of each ranking are joined, at least.
const JOINED: usize = 100;

/// How many collections one search looks at.
const MOST_COLLECTIONS: usize = 256;

/// How much the vectors of the offline embedder count beside the words, and how much more the more words of the question
/// are in no document. They know spelling and no meaning, so where all words are known they have little to add.
const OFFLINE_WEIGHT: f64 = 0.3;
const OFFLINE_WEIGHT_UNKNOWN: f64 = 0.9;

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Any text.
    pub text: String,
    /// How many hits, at most 1000.
    pub limit: usize,
    /// The names of the collections; if there are none, all that can be seen but `learnings`.
    pub collections: Vec<String>,
    /// How.
    pub mode: Mode,
}

/// How is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// By words and vectors, joined; by words alone where there are no vectors.
    #[default]
    Fused,
    /// By words.
    Lexical,
    /// By vectors.
    Vector,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// The best first.
    pub hits: Vec<Hit>,
    /// What the reader has to know: what could not be searched, and why.
    pub notes: Vec<String>,
}

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The chunk.
    pub id: i64,
    /// Its document.
    pub document: i64,
    /// The collection it is in.
    pub collection: Text,
    /// Greater is better. To be compared within one search only.
    pub score: f64,
    /// Where it came from, and whether its words may be believed.
    pub source: Source,
    /// What its document is called.
    pub title: Text,
    /// The headings above it.
    pub heading: Text,
    /// The passage that fits best.
    pub snippet: String,
    /// All of it.
    pub text: Text,
    /// The line, or the page, where it begins.
    pub position: u64,
}

impl Library {
    /// Searches a user's library as it is seen in a session.
    pub async fn search(
        &self,
        user: &UserId,
        session: Option<&SessionId>,
        query: &Query,
    ) -> Result<Results, LibraryError> {
        let (seen, maker) = self.store.visible_collections(user, session).await?;
        let (seen, mut notes) = chosen(seen, &query.collections);
        let limit = query.limit.min(MOST_HITS);
        let words = query_words(&query.text);
        let looking = Looking {
            library: self,
            collections: seen.iter().map(|collection| collection.id).collect(),
            maker,
            depth: limit.max(JOINED),
        };
        let ranking = match query.mode {
            Mode::Lexical => looking.lexical(&words).await?.hits,
            Mode::Vector => {
                let embedder = self.embedder.as_deref().ok_or(LibraryError::NoEmbedder)?;
                notes.extend(missing_note(&seen));
                looking.nearest(embedder, &query.text).await?
            }
            Mode::Fused => {
                let nearest = looking.nearest_if_possible(&query.text);
                let (lexical, nearest) = join(looking.lexical(&words), nearest).await;
                let lexical = lexical?;
                match nearest {
                    None => lexical.hits,
                    Some(Ok(nearest)) => {
                        notes.extend(missing_note(&seen));
                        looking.fused(&lexical, words.len(), &nearest)
                    }
                    Some(Err(error)) => {
                        notes.push(format!("searched by words only: {error}"));
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
        let hits = found.into_iter().map(|found| {
            let score = ranking.iter().find(|(id, _)| *id == found.id);
            hit(found, score.map_or(0.0, |(_, score)| *score), &words)
        });
        Ok(Results {
            hits: hits.collect(),
            notes,
        })
    }
}

/// Chunks and how near they are, the nearest first.
type Nearest = Vec<(i64, f64)>;

/// A search under way.
struct Looking<'a> {
    library: &'a Library,
    collections: Vec<CollectionId>,
    /// Who made the vectors.
    maker: Option<EmbeddingMaker>,
    depth: usize,
}

impl Looking<'_> {
    async fn lexical(&self, words: &[QueryWord]) -> Result<Ranking, LibraryError> {
        if words.is_empty() || self.collections.is_empty() {
            return Ok(Ranking::default());
        }
        let store = &self.library.store;
        let (collections, words) = (self.collections.clone(), words.to_vec());
        Ok(store.search_words(collections, words, self.depth).await?)
    }

    async fn nearest(&self, embedder: &dyn Embedder, text: &str) -> Result<Nearest, LibraryError> {
        if let Some(stored) = &self.maker
            && stored != embedder.maker()
        {
            return Err(LibraryError::other_maker(stored, embedder.maker()));
        }
        let text = start_of(text, MOST_QUERY_BYTES).to_owned();
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
        let (collections, maker) = (self.collections.clone(), embedder.maker().clone());
        match store
            .search_vectors(collections, maker, vector, self.depth)
            .await?
        {
            VectorOutcome::Done(nearest) => Ok(nearest),
            VectorOutcome::OtherMaker(stored) => {
                Err(LibraryError::other_maker(&stored, embedder.maker()))
            }
        }
    }

    /// The nearest, or why there are none, if there is an embedder.
    async fn nearest_if_possible(&self, text: &str) -> Option<Result<Nearest, LibraryError>> {
        let embedder = self.library.embedder.as_deref()?;
        Some(self.nearest(embedder, text).await)
    }

    fn fused(&self, lexical: &Ranking, words: usize, nearest: &[(i64, f64)]) -> Vec<(i64, f64)> {
        let maker = self.library.maker();
        let is_offline = maker.is_some_and(|maker| &*maker.provider == "offline");
        let (scale, weight) = if is_offline {
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

/// The collections that are searched, and what to say of the others.
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
    if seen.len() > MOST_COLLECTIONS {
        notes.push(format!(
            "only {MOST_COLLECTIONS} of {} collections were searched; name those to search",
            seen.len()
        ));
        seen.truncate(MOST_COLLECTIONS);
    }
    (seen, notes)
}

/// What to say if not all chunks have a vector.
fn missing_note(seen: &[CollectionRow]) -> Option<String> {
    let missing: u64 = seen
        .iter()
        .map(|collection| collection.chunks.saturating_sub(collection.vectors))
        .sum();
    (missing > 0).then(|| {
        format!("{missing} passages have no vector yet and are found by their words only; reindex the library")
    })
}

fn hit(found: SearchHit, score: f64, words: &[QueryWord]) -> Hit {
    Hit {
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
