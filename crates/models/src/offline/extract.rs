//! Extracts tool arguments from a request: paths, quoted text, URLs, and the text after a phrase.

/// Returns the first URL.
pub(super) fn address(text: &str) -> Option<String> {
    let is_address = |word: &&str| word.starts_with("https://") || word.starts_with("http://");
    let quotes = ['`', '"', '\'', '(', ')', '<', '>'];
    let mut words = text
        .split_whitespace()
        .map(|word| word.trim_matches(quotes));
    let found = words.find(is_address)?;
    let found = found.trim_end_matches(['.', ',', '?', '!', ';', ':']);
    (found.len() > "https://".len()).then(|| found.trim_end_matches(quotes).to_owned())
}

/// Returns the HTML file to open in the browser: `open page.html` means the page, `read page.html` only its text.
pub(super) fn page_to_open(text: &str) -> Option<String> {
    let opens = tokens(text).any(|token| token.eq_ignore_ascii_case("open"));
    let is_page = |name: &String| name.ends_with(".html") || name.ends_with(".htm");
    file(text).filter(|name| opens && is_page(name))
}

/// Returns what looks like a file name: quoted text, a word with an extension, or the word after "read".
pub(super) fn file(text: &str) -> Option<String> {
    let with_extension = || {
        tokens(text)
            .find(|token| has_extension(token))
            .map(str::to_owned)
    };
    quoted(text)
        .or_else(with_extension)
        .or_else(|| after_verb(text))
}

/// Returns the word after "read", "print" or "show", if no other word follows and it has a capital letter, like README.
pub(super) fn after_verb(text: &str) -> Option<String> {
    let words: Vec<&str> = tokens(text).collect();
    let verb = words
        .iter()
        .position(|word| ["read", "print", "show"].contains(&word.to_lowercase().as_str()))?;
    let rest: Vec<&&str> = words[verb + 1..]
        .iter()
        .filter(|word| !["me", "the", "file"].contains(&word.to_lowercase().as_str()))
        .collect();
    match rest.as_slice() {
        [name] if name.chars().any(char::is_uppercase) => Some((**name).to_owned()),
        _ => None,
    }
}

/// Returns what looks like a path: a file name, a word with a slash, or the word after "in" or "folder".
pub(super) fn path(text: &str) -> Option<String> {
    let with_slash = || {
        tokens(text)
            .find(|token| token.contains('/'))
            .map(str::to_owned)
    };
    file(text)
        .or_else(with_slash)
        .or_else(|| named_folder(text))
}

/// Returns the text after the first of these phrases, without the punctuation at its end.
pub(super) fn text_after(text: &str, marks: &[&str]) -> Option<String> {
    let lower = text.to_lowercase();
    let found = marks
        .iter()
        .find_map(|mark| Some((lower.find(mark)?, mark.len())));
    let (start, length) = found?;
    let rest = text.get(start + length..)?.trim();
    let rest = rest
        .trim_start_matches(':')
        .trim()
        .trim_end_matches(['?', '!', '.']);
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// Returns a short name for a note: the text before its colon, or its first five words.
pub(super) fn key_of(content: &str) -> String {
    let first = content.split_once(':').map(|(key, _)| key.trim());
    let named = first.filter(|key| !key.is_empty() && key.len() <= 60);
    let words = || {
        content
            .split_whitespace()
            .take(5)
            .collect::<Vec<_>>()
            .join(" ")
    };
    named.map_or_else(words, str::to_owned)
}

/// Returns subject, predicate and object; each may be quoted.
pub(super) fn triple(text: &str) -> Option<(String, String, String)> {
    let mut parts = Vec::new();
    for (at, piece) in text.split('"').enumerate() {
        match at % 2 {
            0 => parts.extend(piece.split_whitespace().map(str::to_owned)),
            _ => parts.push(piece.to_owned()),
        }
    }
    let [subject, predicate, object] = parts.try_into().ok()?;
    Some((subject, predicate, object))
}

/// Returns the word after one of these verbs, if no other word follows.
pub(super) fn only_word_after<'a>(text: &'a str, verbs: &[&str]) -> Option<&'a str> {
    let words: Vec<&str> = tokens(text).collect();
    let verb = words
        .iter()
        .position(|word| verbs.contains(&word.to_lowercase().as_str()))?;
    let rest = words[verb + 1..].iter();
    let mut rest =
        rest.filter(|word| !["the", "file", "folder"].contains(&word.to_lowercase().as_str()));
    match (rest.next(), rest.next()) {
        (Some(name), None) => Some(name),
        _ => None,
    }
}

pub(super) fn quoted(text: &str) -> Option<String> {
    ['`', '"', '\'']
        .into_iter()
        .find_map(|mark| between(text, mark))
}

pub(super) fn between(text: &str, mark: char) -> Option<String> {
    let (_, rest) = text.split_once(mark)?;
    let (inside, _) = rest.split_once(mark)?;
    (!inside.is_empty()).then(|| inside.to_owned())
}

/// Splits "create X with the text Y" into the part before "with the text" and Y as a line.
pub(super) fn path_text_and_content(text: &str) -> Option<(&str, String)> {
    const MARKS: [&str; 6] = [
        " with the words ",
        " with the word ",
        " with the text ",
        " with the content ",
        " containing ",
        " saying ",
    ];
    let (before, content) = MARKS.iter().find_map(|mark| text.split_once(mark))?;
    let content = content.trim();
    let content = quoted(content)
        .filter(|inside| inside.len() + 2 == content.len())
        .unwrap_or_else(|| content.to_owned());
    (!content.is_empty()).then(|| (before, format!("{content}\n")))
}

/// Returns the pattern to search for: the quoted text, or everything after "search".
pub(super) fn search_pattern(text: &str) -> Option<String> {
    let start = text.to_lowercase().find("search")?;
    let rest = text.get(start + "search".len()..)?.trim();
    let rest = rest.strip_prefix("for ").unwrap_or(rest).trim();
    let rest = rest.trim_end_matches(['?', '!', '.']);
    quoted(text).or_else(|| (!rest.is_empty()).then(|| rest.to_owned()))
}

pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().map(|token| {
        token
            .trim_matches([',', '?', '!', ';', ':', '(', ')'])
            .trim_end_matches('.')
    })
}

pub(super) fn has_extension(token: &str) -> bool {
    let name = token.rsplit('/').next().unwrap_or(token);
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        !extension.is_empty()
            && extension.len() <= 8
            && extension.chars().all(char::is_alphanumeric)
    })
}

pub(super) fn named_folder(text: &str) -> Option<String> {
    const NOT_NAMES: [&str; 13] = [
        "this",
        "the",
        "here",
        "a",
        "my",
        "your",
        "it",
        "that",
        "there",
        "folder",
        "directory",
        "our",
        "which",
    ];
    let tokens: Vec<&str> = tokens(text).collect();
    let after = |word: &str| {
        tokens
            .iter()
            .position(|token| token.eq_ignore_ascii_case(word))
            .map(|at| at + 1)
    };
    ["in", "inside", "folder", "directory", "under"]
        .into_iter()
        .find_map(|word| {
            let mut rest = tokens.get(after(word)?..)?.iter();
            let name = rest.find(|token| {
                !["the", "folder", "directory"].contains(&token.to_lowercase().as_str())
            })?;
            let plain = !name.is_empty() && !NOT_NAMES.contains(&name.to_lowercase().as_str());
            plain.then(|| (*name).to_owned())
        })
}
