//! One request of a message, such as "please read notes.md": without courtesy, and matched by how it starts.

/// Words of courtesy at the start of a request.
const COURTESIES: &[&str] = &[
    "please",
    "kindly",
    "can you",
    "could you",
    "would you",
    "will you",
    "i want you to",
    "i would like you to",
    "i'd like you to",
    "i need you to",
    "i want to",
    "i would like to",
    "i'd like to",
    "i need to",
    "let's",
    "let us",
    "go ahead and",
    "help me to",
    "help me",
    "now",
    "then",
    "also",
    "and",
    "just",
    "ok",
    "okay",
    "hello",
    "hi",
    "hey",
    "good morning",
    "hallo",
    "moin",
    "guten tag",
    "hola",
    "bonjour",
    "yes",
    "thanks",
    "thank you",
    "great",
    "nice",
    "cool",
    "perfect",
    "lango",
];

/// A request without courtesy and without the punctuation at its end.
pub(super) struct Clause<'a> {
    pub text: &'a str,
    /// The request with the punctuation at its end, which belongs to a command such as `go test ./...`.
    pub with_end: &'a str,
    /// Whether it was asked for as a question: `can you …?`
    pub is_question: bool,
    /// The same bytes in lower case, so offsets are valid in both. Letters outside of ASCII are unchanged.
    lower: String,
}

impl<'a> Clause<'a> {
    pub(super) fn read(text: &'a str) -> Self {
        let whole = text.trim();
        let with_end = without_courtesy(whole);
        let text = without_address(without_ends(with_end));
        let courtesy = &whole[..whole.len() - with_end.len()];
        Self {
            text,
            with_end: without_address(with_end),
            is_question: words(courtesy).any(|word| word.eq_ignore_ascii_case("you")),
            lower: text.to_ascii_lowercase(),
        }
    }

    /// Returns whether the request is exactly one of these texts.
    pub(super) fn is(&self, texts: &[&str]) -> bool {
        texts.contains(&self.lower.as_str())
    }

    /// Returns whether the request starts with one of these phrases, as whole words.
    pub(super) fn starts(&self, phrases: &[&str]) -> bool {
        phrases
            .iter()
            .any(|phrase| self.lower.starts_with(phrase) && ends_word(&self.lower[phrase.len()..]))
    }

    /// Returns the text after the first of these phrases that starts the request; `None` if nothing follows.
    pub(super) fn after(&self, phrases: &[&str]) -> Option<&'a str> {
        let mut found = phrases
            .iter()
            .filter(|phrase| self.lower.starts_with(**phrase));
        let phrase = found.find(|phrase| ends_word(&self.lower[phrase.len()..]))?;
        non_empty(&self.text[phrase.len()..])
    }

    /// Returns whether the request contains this word.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.words().any(|other| other == word)
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        words(&self.lower)
    }
}

/// Splits a text into words of letters, digits and apostrophes.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
}

/// Removes a phrase from the start of a text, in any case and only as whole words, with the spaces, commas and colons
/// that follow it.
pub(super) fn strip_phrase<'t>(text: &'t str, phrase: &str) -> Option<&'t str> {
    let start = text.get(..phrase.len())?;
    let rest = &text[phrase.len()..];
    (start.eq_ignore_ascii_case(phrase) && ends_word(rest))
        .then(|| rest.trim_start_matches([' ', ',', ':']))
}

/// Removes the first of these phrases that starts the text.
pub(super) fn strip_any<'t>(text: &'t str, phrases: &[&str]) -> Option<&'t str> {
    phrases.iter().find_map(|phrase| strip_phrase(text, phrase))
}

/// Returns the text without spaces and a leading colon; `None` if it is empty.
pub(super) fn non_empty(text: &str) -> Option<&str> {
    let text = text.trim().trim_start_matches(':').trim();
    (!text.is_empty()).then_some(text)
}

/// Whether a word ends before this text. `a` does not end inside `a.md`, `a/b` or `a-b`.
fn ends_word(rest: &str) -> bool {
    let mut letters = rest.chars();
    match letters.next() {
        Some('.' | '/') => !letters.next().is_some_and(char::is_alphanumeric),
        Some(c) => !(c.is_alphanumeric() || matches!(c, '\'' | '_' | '-')),
        None => true,
    }
}

fn without_courtesy(text: &str) -> &str {
    let mut text = text;
    while let Some(rest) = strip_any(text, COURTESIES)
        .map(|rest| rest.trim_start_matches(['!', '.', ' ']))
        .filter(|rest| !rest.is_empty())
    {
        text = rest;
    }
    text
}

fn without_ends(text: &str) -> &str {
    let mut text = text;
    loop {
        let shorter = without_end(text);
        if shorter.len() == text.len() {
            return text;
        }
        text = shorter;
    }
}

/// Removes one sign or courtesy from the end. A full stop stays after a space, where it is a folder: `list .`
fn without_end(text: &str) -> &str {
    let trimmed = text.trim_end_matches(['?', '!', ',', ';', ' ']);
    if let Some(rest) = trimmed.strip_suffix('.')
        && !rest.ends_with([' ', '.', '/'])
        && !rest.is_empty()
    {
        return rest;
    }
    for courtesy in [", please", ", thanks", ", thank you"] {
        let start = trimmed.len().saturating_sub(courtesy.len());
        if start > 0
            && let Some(end) = trimmed.get(start..)
            && end.eq_ignore_ascii_case(courtesy)
        {
            return &trimmed[..start];
        }
    }
    if trimmed.is_empty() { text } else { trimmed }
}

/// Removes the agent that a request is addressed to: `ask the librarian to …`, `tell operator: …`, `@planner …`.
pub(super) fn without_address(text: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let (named, is_mention) = match text.strip_prefix('@') {
        Some(named) => (named, true),
        None => match strip_any(text, &["ask", "tell", "let", "have"]) {
            Some(named) => (strip_phrase(named, "the").unwrap_or(named), false),
            None => return text,
        },
    };
    let end = named.find(|c| !is_name(c)).unwrap_or(named.len());
    let rest = named[end..].trim_start();
    let request = match rest.strip_prefix([':', ',']) {
        Some(rest) => Some(rest),
        None => strip_phrase(rest, "to").or(is_mention.then_some(rest)),
    };
    let request = request.map(str::trim).filter(|rest| !rest.is_empty());
    match request {
        Some(request) if end > 0 => strip_phrase(request, "please").unwrap_or(request),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn courtesy_addresses_and_punctuation_are_removed() {
        for (text, request) in [
            ("Please, could you read notes.md?", "read notes.md"),
            ("OK now list the files!!", "list the files"),
            ("Hello lango, list files, please.", "list files"),
            ("list .", "list ."),
            ("read ../a.", "read ../a"),
            ("ask the librarian to list files", "list files"),
            ("ask neighbour: what is here?", "what is here"),
            ("@planner plan a party", "plan a party"),
            ("ask me anything", "ask me anything"),
            ("tell me the title", "tell me the title"),
            ("please", "please"),
            ("hidden files", "hidden files"),
            ("?", "?"),
        ] {
            assert_eq!(Clause::read(text).text, request, "{text}");
        }
    }

    #[test]
    fn phrases_match_whole_words() {
        let clause = Clause::read("List the files");
        assert!(clause.starts(&["list the"]) && !clause.starts(&["lis", "list th"]));
        assert_eq!(clause.after(&["list"]), Some("the files"));
        assert_eq!(Clause::read("list-all").after(&["list"]), None);
        assert_eq!(Clause::read("list").after(&["list"]), None);
        assert_eq!(strip_phrase("a.md", "a"), None);
        assert_eq!(strip_phrase("a/b", "a"), None);
        assert_eq!(strip_phrase("A b", "a"), Some("b"));
    }
}
