//! Embeddings without a machine-learning model: hashed words and pieces of words.
//!
//! Two texts are near if they share words, or words with a similar spelling: `recieve` is near `receive`, `colour` near
//! `color`. This tolerates spelling and endings but captures **no meaning**: `car` and `automobile` are as far apart as
//! any two words. It needs no download and no network, and gives the same vectors on every machine.
//!
//! A stored vector does not depend on other texts, so it stays valid when the library grows. Instead, the words of a
//! query are weighted by how rare they are in the library.

use crate::words::{is_common, words};
use lango_core::{BoxFuture, EmbedError, Embedder, EmbeddingModel, EmbeddingPurpose};
use lango_store::Store;
use std::collections::HashMap;
use std::sync::Arc;

const PROVIDER: &str = "offline";

const DIMENSIONS: usize = 1024;

/// The number of dimensions to which a word or a piece is added, so that even short texts fill a vector.
const PLACES: usize = 32;

/// The lengths of the pieces of a word, in characters.
const PIECES: [usize; 2] = [3, 4];

/// How many characters of a word are used.
const MAX_WORD: usize = 40;

/// An embedder that hashes words and pieces of words.
pub struct OfflineEmbedder {
    model: EmbeddingModel,
    store: Option<Arc<Store>>,
}

impl OfflineEmbedder {
    /// Creates an embedder that gives all words the same weight.
    pub fn new() -> Self {
        Self {
            model: EmbeddingModel {
                provider: PROVIDER.into(),
                model: "words-and-letters".into(),
                dimensions: DIMENSIONS as u32,
                version: 1,
            },
            store: None,
        }
    }

    /// Creates an embedder that weights the words of a query by how rare they are in this store's library. Its vectors
    /// are compatible with those of [`new`](Self::new).
    pub fn with_frequencies(store: Arc<Store>) -> Self {
        Self {
            store: Some(store),
            ..Self::new()
        }
    }

    /// Returns the weight of each word of a query.
    async fn weights(&self, counted: &[(String, u32)]) -> Vec<f32> {
        let Some(store) = &self.store else {
            return vec![1.0; counted.len()];
        };
        let words = counted.iter().map(|(word, _)| word.clone()).collect();
        match store.word_frequencies(words).await {
            Ok((all, with)) => with.into_iter().map(|with| rarity(all, with)).collect(),
            // Weights only improve a search, so it works without them.
            Err(_) => vec![1.0; counted.len()],
        }
    }
}

impl Default for OfflineEmbedder {
    fn default() -> Self {
        Self::new()
    }
}

impl Embedder for OfflineEmbedder {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn embed(
        &self,
        texts: Vec<String>,
        purpose: EmbeddingPurpose,
    ) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            let stopped = |error: tokio::task::JoinError| EmbedError {
                provider: PROVIDER.into(),
                detail: error.to_string(),
                is_transient: false,
            };
            let counted: Vec<_> = texts.iter().map(|text| count(text)).collect();
            let mut weighed = Vec::with_capacity(counted.len());
            for counted in counted {
                let weights = match purpose {
                    EmbeddingPurpose::Document => vec![1.0; counted.len()],
                    EmbeddingPurpose::Query => self.weights(&counted).await,
                };
                weighed.push((counted, weights));
            }
            let vectors = move || {
                let vector = |(counted, weights): (Vec<_>, Vec<_>)| vector(&counted, &weights);
                weighed.into_iter().map(vector).collect()
            };
            tokio::task::spawn_blocking(vectors).await.map_err(stopped)
        })
    }
}

fn rarity(all: u64, with: u64) -> f32 {
    let (all, with) = (all as f64, with as f64);
    (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln() as f32
}

/// Returns the words of a text that are not common, in the order of their first use, with the number of occurrences.
fn count(text: &str) -> Vec<(String, u32)> {
    let mut positions = HashMap::new();
    let mut counted: Vec<(String, u32)> = Vec::new();
    for word in words(text) {
        let word: String = word
            .chars()
            .take(MAX_WORD)
            .collect::<String>()
            .to_lowercase();
        if is_common(&word) {
            continue;
        }
        match positions.get(&word) {
            Some(&at) => counted[at as usize].1 += 1,
            None => {
                positions.insert(word.clone(), counted.len() as u32);
                counted.push((word, 1));
            }
        }
    }
    counted
}

fn vector(counted: &[(String, u32)], weights: &[f32]) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    for ((word, times), weight) in counted.iter().zip(weights) {
        let weight = weight * (1.0 + (*times as f32).ln());
        add(&mut vector, hash(b'w', stem(word)), weight);
        let marked = format!("<{word}>");
        let ends: Vec<usize> = marked
            .char_indices()
            .map(|(at, _)| at)
            .chain([marked.len()])
            .collect();
        let number: usize = PIECES.iter().map(|size| ends.windows(size + 1).len()).sum();
        let weight = weight / (number.max(1) as f32).sqrt();
        for size in PIECES {
            for piece in ends.windows(size + 1) {
                add(
                    &mut vector,
                    hash(b'p', &marked[piece[0]..piece[size]]),
                    weight,
                );
            }
        }
    }
    let length = vector
        .iter()
        .map(|number| number * number)
        .sum::<f32>()
        .sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    }
    vector
}

/// Adds a feature to its dimensions, each with a pseudo-random sign.
fn add(vector: &mut [f32], mut state: u64, weight: f32) {
    for _ in 0..PLACES / 4 {
        // SplitMix64: each step gives four dimensions of ten bits and four signs.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        for part in 0..4 {
            let bits = mixed >> (part * 16);
            let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
            vector[bits as usize % DIMENSIONS] += sign * weight;
        }
    }
}

/// FNV-1a.
fn hash(kind: u8, text: &str) -> u64 {
    std::iter::once(kind)
        .chain(text.bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// Removes the most common English endings from a word.
fn stem(word: &str) -> &str {
    const ENDINGS: [&str; 12] = [
        "ations", "ation", "ingly", "edly", "ings", "ing", "ies", "ied", "es", "ed", "ly", "s",
    ];
    let stem = ENDINGS.iter().find_map(|ending| {
        let stem = word.strip_suffix(ending)?;
        (stem.len() >= 3).then_some(stem)
    });
    stem.unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearness(a: &str, b: &str) -> f32 {
        let vector = |text| {
            let counted = count(text);
            vector(&counted, &vec![1.0; counted.len()])
        };
        let (a, b) = (vector(a), vector(b));
        a.iter().zip(&b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn only_words_with_similar_spelling_are_near() {
        assert!(nearness("combustion", "combustoin") > 0.2);
        assert!(nearness("boundary layers", "the boundary layer") > 0.6);
        assert!(nearness("car", "automobile").abs() < 0.1);
    }

    #[test]
    fn the_vectors_are_the_same_on_every_machine() {
        let vector = vector(&count("slipstream"), &[1.0]);
        let first: Vec<_> = vector
            .iter()
            .take(8)
            .map(|number| (number * 1000.0) as i32)
            .collect();
        assert_eq!(first, [0, -28, -28, 0, 0, 85, 28, 0]);
    }

    #[test]
    fn a_text_without_words_gives_a_zero_vector() {
        assert!(
            vector(&count("?! the \0"), &[])
                .iter()
                .all(|number| *number == 0.0)
        );
    }
}
