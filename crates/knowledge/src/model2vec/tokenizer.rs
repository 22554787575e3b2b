//! `tokenizer.json`, as far as it is BERT's: a text becomes the numbers of the pieces that it is made of.
//!
//! Some pieces are found in the text as it stands, before anything is done to it (`[PAD]`); in what is between them each
//! word is parted into the longest pieces that are known, from its beginning on. A word that cannot be parted so counts for
//! nothing.

use super::normalizer::{BertNormalizer, words};
use super::{Problem, not_json};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Parts texts into numbered pieces.
pub(super) struct Tokenizer {
    vocabulary: HashMap<String, u32>,
    unknown: Option<u32>,
    /// What comes before a piece that does not begin its word.
    prefix: String,
    longest_word: usize,
    normalizer: Option<BertNormalizer>,
    /// Found before the text is normalized.
    early: Fixed,
    /// Found after.
    late: Fixed,
    /// How many characters the median piece has.
    median: usize,
    /// One more than the largest number of a piece.
    ids: usize,
}

/// A longer word is an unknown one, whatever the file says: looking for pieces takes the square of its length.
const LONGEST_WORD: usize = 1000;

#[derive(Deserialize)]
struct Kinds {
    model: Kind,
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
}

#[derive(Deserialize)]
struct Kind {
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
    pub fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let kinds: Kinds = serde_json::from_slice(bytes).map_err(not_json)?;
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
            longest_word: model.max_input_chars_per_word.min(LONGEST_WORD),
            early: Fixed::of(early),
            late: Fixed::of(late),
            median: median_length(all.keys()),
            ids: 1 + all.values().max().map_or(0, |id| *id as usize),
            vocabulary: model.vocab,
            normalizer,
        })
    }

    /// How many rows the numbers of pieces need.
    pub fn ids(&self) -> usize {
        self.ids
    }

    /// The numbers of the pieces of a text that are known, looking at no more than `most` pieces.
    pub fn tokenize(&self, text: &str, most: usize) -> Vec<u32> {
        let characters = most.saturating_mul(self.median);
        let end = text.char_indices().nth(characters);
        let text = end.map_or(text, |(end, _)| &text[..end]);
        let mut ids = Vec::new();
        for part in self.early.part(text) {
            match part {
                Part::Piece(id) => ids.push(Some(id)),
                Part::Text(text) => {
                    let normalizer = self.normalizer.as_ref();
                    let normalized = normalizer.map(|normalizer| normalizer.normalize(text));
                    self.pieces_of(normalized.as_deref().unwrap_or(text), most, &mut ids);
                }
            }
            if ids.len() >= most {
                break;
            }
        }
        let known = ids.into_iter().take(most).flatten();
        known.filter(|id| Some(*id) != self.unknown).collect()
    }

    /// Adds the pieces of a normalized text; those that are not known are empty.
    fn pieces_of(&self, text: &str, most: usize, ids: &mut Vec<Option<u32>>) {
        for part in self.late.part(text) {
            match part {
                Part::Piece(id) => ids.push(Some(id)),
                Part::Text(text) => {
                    for word in words(text) {
                        if ids.len() >= most {
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
        if word.chars().nth(self.longest_word).is_some() {
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

impl Kinds {
    /// The normalizer, if all is as BERT has it.
    fn expect_bert(self) -> Result<Option<BertNormalizer>, Problem> {
        let kind = |part: &Value| part["type"].as_str().unwrap_or("none").to_owned();
        if self.model.kind != "WordPiece" {
            let named: String = self.model.kind.chars().take(40).collect();
            return Err(unsupported(&format!("a tokenizer of kind {named:?}")));
        }
        let words = self.pre_tokenizer.as_ref().map(kind);
        if words.as_deref() != Some("BertPreTokenizer") {
            return Err(unsupported("a way to part words that is not BERT's"));
        }
        match self.normalizer {
            None => Ok(None),
            Some(normalizer) if kind(&normalizer) == "BertNormalizer" => {
                BertNormalizer::deserialize(normalizer)
                    .map(Some)
                    .map_err(not_json)
            }
            Some(_) => Err(unsupported("a way to normalize texts that is not BERT's")),
        }
    }
}

fn unsupported(what: &str) -> Problem {
    Problem::Unsupported(format!(
        "it has {what}, and lango knows WordPiece as BERT has it; take such a model, as most of those for English are"
    ))
}

/// As the library counts it: of an even number, the middle between the two in the middle, rounded down.
fn median_length<'a>(pieces: impl Iterator<Item = &'a String>) -> usize {
    let mut lengths: Vec<usize> = pieces.map(|piece| piece.chars().count()).collect();
    lengths.sort_unstable();
    let upper = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    let lower = lengths.get(lengths.len().saturating_sub(1) / 2).copied();
    lower.unwrap_or(0).midpoint(upper)
}

/// Pieces that are found as they stand, by their first byte and with the longest first.
struct Fixed(BTreeMap<u8, Vec<(String, u32)>>);

enum Part<'a> {
    Text(&'a str),
    Piece(u32),
}

impl Fixed {
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

    /// Where the first of them begins and ends.
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
