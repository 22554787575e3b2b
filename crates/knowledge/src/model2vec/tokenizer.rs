//! BERT's tokenizer from `tokenizer.json`: splits a text into pieces and returns their ids.
//!
//! Added tokens such as `[PAD]` are found in the unchanged text. In the text between them, each word is split from its
//! start into the longest known pieces. A word that cannot be split like this is ignored.

use super::normalizer::{BertNormalizer, words};
use super::{Problem, not_json};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Splits texts into pieces with ids.
pub(super) struct Tokenizer {
    vocabulary: HashMap<String, u32>,
    unknown: Option<u32>,
    /// The prefix of a piece that does not start its word.
    prefix: String,
    max_word_characters: usize,
    normalizer: Option<BertNormalizer>,
    /// Added tokens that are found before the text is normalized.
    early: AddedTokens,
    /// Added tokens that are found afterwards.
    late: AddedTokens,
    /// The median length of the pieces, in characters.
    median: usize,
    /// One more than the largest id.
    ids: usize,
}

/// Longer words count as unknown, whatever the file says, because splitting takes quadratic time.
const MAX_WORD: usize = 1000;

#[derive(Deserialize)]
struct TokenizerKinds {
    model: TokenizerKind,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
}

#[derive(Deserialize)]
struct TokenizerKind {
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct WordPieceFile {
    model: WordPiece,
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
}

#[derive(Deserialize)]
struct WordPiece {
    vocab: HashMap<String, u32>,
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: usize,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    normalized: bool,
    #[serde(default)]
    single_word: bool,
}

impl Tokenizer {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let kinds: TokenizerKinds = serde_json::from_slice(bytes).map_err(not_json)?;
        let normalizer = kinds.expect_bert()?;
        let file: WordPieceFile = serde_json::from_slice(bytes).map_err(not_json)?;
        let WordPieceFile {
            model,
            added_tokens,
        } = file;
        if let Some(token) = added_tokens.iter().find(|token| token.single_word) {
            return Err(unsupported(&format!(
                "a token that is a single word ({:?})",
                token.content
            )));
        }
        let mut all = model.vocab.clone();
        all.extend(
            added_tokens
                .iter()
                .map(|token| (token.content.clone(), token.id)),
        );
        if all.is_empty() {
            return Err(Problem::Broken("it has no vocabulary".to_owned()));
        }
        let normalized = |text: &str| match &normalizer {
            Some(normalizer) => normalizer.normalize(text),
            None => text.to_owned(),
        };
        let (late, early): (Vec<_>, Vec<_>) =
            added_tokens.iter().partition(|token| token.normalized);
        let early = early.iter().map(|token| (token.content.clone(), token.id));
        let late = late
            .iter()
            .map(|token| (normalized(&token.content), token.id));
        Ok(Self {
            unknown: all.get(&model.unk_token).copied(),
            prefix: model.continuing_subword_prefix,
            max_word_characters: model.max_input_chars_per_word.min(MAX_WORD),
            early: AddedTokens::of(early),
            late: AddedTokens::of(late),
            median: median_length(all.keys()),
            ids: 1 + all.values().max().map_or(0, |id| *id as usize),
            vocabulary: model.vocab,
            normalizer,
        })
    }

    /// Returns the number of rows that the ids need.
    pub(super) fn ids(&self) -> usize {
        self.ids
    }

    /// Returns the ids of the known pieces among the first `limit` pieces of a text.
    pub(super) fn tokenize(&self, text: &str, limit: usize) -> Vec<u32> {
        let characters = limit.saturating_mul(self.median);
        let end = text.char_indices().nth(characters);
        let text = end.map_or(text, |(end, _)| &text[..end]);
        let mut ids = Vec::new();
        for part in self.early.part(text) {
            match part {
                Part::Piece(id) => ids.push(Some(id)),
                Part::Text(text) => {
                    let normalizer = self.normalizer.as_ref();
                    let normalized = normalizer.map(|normalizer| normalizer.normalize(text));
                    self.pieces_of(normalized.as_deref().unwrap_or(text), limit, &mut ids);
                }
            }
            if ids.len() >= limit {
                break;
            }
        }
        let known = ids.into_iter().take(limit).flatten();
        known.filter(|id| Some(*id) != self.unknown).collect()
    }

    /// Adds the ids of a normalized text's pieces; `None` for an unknown word.
    fn pieces_of(&self, text: &str, limit: usize, ids: &mut Vec<Option<u32>>) {
        for part in self.late.part(text) {
            match part {
                Part::Piece(id) => ids.push(Some(id)),
                Part::Text(text) => {
                    for word in words(text) {
                        if ids.len() >= limit {
                            return;
                        }
                        match self.pieces_of_word(word) {
                            Some(pieces) => ids.extend(pieces.into_iter().map(Some)),
                            None => ids.push(None),
                        }
                    }
                }
            }
        }
    }

    fn pieces_of_word(&self, word: &str) -> Option<Vec<u32>> {
        if word.chars().nth(self.max_word_characters).is_some() {
            return None;
        }
        let mut pieces = Vec::new();
        let mut rest = word;
        let mut sought = String::new();
        while !rest.is_empty() {
            let ends = rest.char_indices().rev();
            let mut ends = std::iter::once(rest.len())
                .chain(ends.map(|(end, _)| end))
                .filter(|end| *end > 0);
            let (end, id) = ends.find_map(|end| {
                sought.clear();
                if !pieces.is_empty() {
                    sought.push_str(&self.prefix);
                }
                sought.push_str(&rest[..end]);
                self.vocabulary.get(&sought).map(|id| (end, *id))
            })?;
            pieces.push(id);
            rest = &rest[end..];
        }
        Some(pieces)
    }
}

impl TokenizerKinds {
    /// Checks that the tokenizer is BERT's and returns its normalizer.
    fn expect_bert(self) -> Result<Option<BertNormalizer>, Problem> {
        let kind = |part: &Value| part["type"].as_str().unwrap_or("none").to_owned();
        if self.model.kind != "WordPiece" {
            let named: String = self.model.kind.chars().take(40).collect();
            return Err(unsupported(&format!("a tokenizer of kind {named:?}")));
        }
        let words = self.pre_tokenizer.as_ref().map(kind);
        if words.as_deref() != Some("BertPreTokenizer") {
            return Err(unsupported("a pre-tokenizer other than BERT's"));
        }
        match self.normalizer {
            None => Ok(None),
            Some(normalizer) if kind(&normalizer) == "BertNormalizer" => {
                BertNormalizer::deserialize(normalizer)
                    .map(Some)
                    .map_err(not_json)
            }
            Some(_) => Err(unsupported("a normalizer other than BERT's")),
        }
    }
}

fn unsupported(what: &str) -> Problem {
    Problem::Unsupported(format!(
        "it has {what}, but lango supports only BERT's WordPiece; use a model with that, as most models for English have"
    ))
}

/// Returns the median length as the Python library does: for an even number of pieces, the mean of the middle two,
/// rounded down.
fn median_length<'a>(pieces: impl Iterator<Item = &'a String>) -> usize {
    let mut lengths: Vec<usize> = pieces.map(|piece| piece.chars().count()).collect();
    lengths.sort_unstable();
    let upper = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let lower = lengths.get(lengths.len().saturating_sub(1) / 2).copied();
    lower.unwrap_or(0).midpoint(upper)
}

/// Added tokens by their first byte, the longest first.
struct AddedTokens(BTreeMap<u8, Vec<(String, u32)>>);

enum Part<'a> {
    Text(&'a str),
    Piece(u32),
}

impl AddedTokens {
    fn of(pieces: impl Iterator<Item = (String, u32)>) -> Self {
        let mut fixed: BTreeMap<u8, Vec<(String, u32)>> = BTreeMap::new();
        for (content, id) in pieces {
            if let Some(first) = content.bytes().next() {
                fixed.entry(first).or_default().push((content, id));
            }
        }
        for pieces in fixed.values_mut() {
            pieces.sort_by_key(|(content, _)| std::cmp::Reverse(content.len()));
        }
        Self(fixed)
    }

    fn part<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Part<'a>> {
        let mut rest = text;
        let mut found = None;
        std::iter::from_fn(move || {
            if let Some(id) = found.take() {
                return Some(Part::Piece(id));
            }
            if rest.is_empty() {
                return None;
            }
            let (before, after) = match self.find(rest) {
                Some((from, to, id)) => {
                    found = Some(id);
                    (&rest[..from], &rest[to..])
                }
                None => (rest, ""),
            };
            rest = after;
            Some(Part::Text(before))
        })
    }

    /// Finds the first added token. Returns its start, its end and its id.
    fn find(&self, text: &str) -> Option<(usize, usize, u32)> {
        if self.0.is_empty() {
            return None;
        }
        text.bytes().enumerate().find_map(|(from, first)| {
            let here = self.0.get(&first)?;
            let rest = &text.as_bytes()[from..];
            let (content, id) = here
                .iter()
                .find(|(content, _)| rest.starts_with(content.as_bytes()))?;
            Some((from, from + content.len(), *id))
        })
    }
}
