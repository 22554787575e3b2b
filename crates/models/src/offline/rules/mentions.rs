//! Rules for questions about the text of files: where something is, and which files mention it.
//!
//! Such questions are also asked about anything else. So a question counts only if it says that it is about files, or
//! if what it asks for can only be code.

use super::Task;
use super::files::{is_here, strip_ending};
use super::search::{scope, search_task};
use crate::offline::clause::{Clause, strip_any, words};
use crate::offline::extract::{
    certain_path, is_description, is_path, leading_path, leading_quote, split_last, unquoted,
    without_label,
};

/// Words between a text and the place to search.
const PLACES: &[&str] = &[" in ", " inside ", " under ", " within "];

/// Finds where something is in the files: `where is TODO in this project`, `where is foo defined`, `where do we use
/// tokio`.
pub(super) fn where_is(clause: &Clause<'_>) -> Option<Task> {
    const MAX_WORDS: usize = 3;
    let used = clause.after(&[
        "where do we use",
        "where do i use",
        "where do we call",
        "where do i call",
        "where do we mention",
        "where do i mention",
    ]);
    let rest = used.or_else(|| {
        clause.after(&[
            "where is",
            "where's",
            "where are",
            "where do we have",
            "where do i have",
            "where can i find",
            "show me where",
            "tell me where",
            "find where",
        ])
    })?;
    let (text, folder) = split_last(rest, PLACES, scope).unwrap_or((rest, None));
    // The files do not say where they are wrong.
    let faults = ["the bug", "the error", "the mistake", "the problem"];
    if strip_any(text, &faults).is_some() {
        return None;
    }
    let name = Name::read(text);
    let is_text = unquoted(name.text).is_some();
    let is_name = is_text || (words(name.text).count() <= MAX_WORDS && !is_vague(name.text));
    let is_one_word = is_text || words(name.text).count() == 1;
    let is_about_files = name.is_code
        || (used.is_some() && is_one_word)
        || split_last(rest, PLACES, certain_scope).is_some();
    (is_name && is_about_files)
        .then(|| search_task(name.text, folder))
        .flatten()
}

/// Reads a place that can be nothing but files: this project, a path, or what is called a file or folder.
fn certain_scope(text: &str) -> Option<()> {
    (is_here(text) || certain_path(text).is_some()).then_some(())
}

/// What a question asks for.
struct Name<'t> {
    text: &'t str,
    /// Whether it is certainly something in files: the question or its form says so.
    is_code: bool,
}

impl<'t> Name<'t> {
    /// Reads `the function foo`, `foo defined`, `foo is used`, `the word milk` or just `foo`.
    fn read(text: &'t str) -> Self {
        const ENDINGS: &[&str] = &[
            "is used",
            "is defined",
            "is mentioned",
            "is called",
            "is declared",
            "is implemented",
            "used",
            "defined",
            "mentioned",
            "called",
            "declared",
            "implemented",
        ];
        const KINDS: &[&str] = &[
            "function", "fn", "method", "struct", "enum", "trait", "macro", "variable", "constant",
        ];
        // These are also ordinary words: `the class photo`.
        const VAGUE_KINDS: &[&str] = &["class", "type", "module", "interface"];
        let asked = strip_ending(text, ENDINGS);
        let text = asked.unwrap_or(text);
        let labelled = without_label(text);
        if labelled.len() < text.len() && !labelled.is_empty() {
            let is_code = asked.is_some() || is_word_label(text) || unquoted(labelled).is_some();
            return Self {
                text: labelled,
                is_code,
            };
        }
        let bare = strip_any(text, &["the", "a", "an"]).unwrap_or(text);
        let after = |kinds| strip_any(bare, kinds).filter(|rest: &&str| is_one_word(rest));
        let is_type = |rest: &&str| asked.is_some() || rest.starts_with(char::is_uppercase);
        let kind = after(KINDS).or_else(|| after(VAGUE_KINDS).filter(is_type));
        let text = kind.unwrap_or(bare);
        Self {
            text,
            is_code: asked.is_some() || kind.is_some() || is_code(text),
        }
    }
}

fn is_one_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// Whether a text calls what follows a word; a line or a name could be of anything.
fn is_word_label(text: &str) -> bool {
    strip_any(text, &["the word", "the words", "the phrase"]).is_some()
}

/// Whether a text can only be code, because it is written like `parse_args`, `parseArgs`, `a::b` or `main()`.
fn is_code(text: &str) -> bool {
    let text = unquoted(text).unwrap_or(text);
    let has_capital_inside = text.starts_with(char::is_lowercase)
        && text
            .chars()
            .zip(text.chars().skip(1))
            .any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    let is_identifier = text.contains("::")
        || text.ends_with("()")
        || text.trim_matches('_').contains('_')
        || has_capital_inside;
    is_one_word(text) && is_identifier && !is_path(text)
}

/// Whether a text names nothing that could be searched for.
fn is_vague(text: &str) -> bool {
    let pronouns = [
        "i",
        "we",
        "you",
        "he",
        "she",
        "they",
        "everyone",
        "everybody",
    ];
    is_description(text) || strip_any(text, &pronouns).is_some()
}

/// Finds the lines that mention something: `which files contain milk`, `find everything that mentions invoice`.
pub(super) fn mentions(clause: &Clause<'_>) -> Option<Task> {
    const VERBS: &[&str] = &[
        "find me",
        "find",
        "show me",
        "show",
        "list",
        "give me",
        "search for",
        "look for",
        "get",
        "which",
        "what",
        "does",
        "do",
        "is there",
        "are there",
    ];
    const QUANTIFIERS: &[&str] = &[
        "all of the",
        "all the",
        "all my",
        "all",
        "every",
        "each",
        "any",
        "the",
        "my",
        "a",
    ];
    const THINGS: &[&str] = &[
        "files",
        "file",
        "lines",
        "line",
        "places",
        "everything",
        "anything",
    ];
    const MENTIONS: &[&str] = &[
        "mentions",
        "mention",
        "mentioning",
        "contains",
        "contain",
        "containing",
    ];
    if let Some((text, path)) = asked_of_file(clause) {
        return search_task(text, Some(path));
    }
    let rest = clause.after(VERBS)?;
    let rest = strip_any(rest, QUANTIFIERS).unwrap_or(rest);
    let nouns = strip_any(rest, &["occurrences of", "mentions of"]);
    // "the uses of baking soda" are in no file.
    let uses = || strip_any(rest, &["usages of", "uses of", "references to"]);
    let text = match nouns.or_else(|| uses().filter(|text| is_named(text))) {
        Some(text) => text,
        None => {
            let rest = strip_any(rest, THINGS)?;
            let relation = strip_any(rest, &["that", "which", "where"]).unwrap_or(rest);
            match strip_any(relation, MENTIONS) {
                Some(text) => text,
                // "files with" may also say how the files are: "files with more than 100 lines".
                None => strip_any(rest, &["with", "that have", "that use", "use"])
                    .filter(|text| is_named(text))?,
            }
        }
    };
    let (text, folder) = split_last(text, PLACES, scope).unwrap_or((text, None));
    search_task(text, folder)
}

/// Reads a question about one file: `does notes.md mention milk?`, `is the word milk in notes.md?`
fn asked_of_file<'a>(clause: &Clause<'a>) -> Option<(&'a str, String)> {
    if let Some(rest) = clause.after(&["is the word", "is the text"]) {
        return split_last(rest, &[" in "], certain_path);
    }
    let (path, after) = leading_path(clause.after(&["does"])?)?;
    let text = strip_any(after.trim_start(), &["contain", "mention"])?;
    path.is_certain.then_some((text, path.path))
}

/// Whether a text starts with one word or a quoted text to search for, and nothing follows but a place.
fn is_named(text: &str) -> bool {
    let text = split_last(text, PLACES, scope).map_or(text, |(text, _)| text);
    let names_file = strip_any(text, &["the name"]).is_some();
    (without_label(text).len() < text.len() && !names_file)
        || is_one_word(text)
        || leading_quote(text).is_some_and(|(_, after)| after.trim().is_empty())
}
