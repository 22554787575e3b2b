//! Reading arguments out of a request: paths, quoted words, and what follows a phrase.

/// The first address of the web.
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

/// The HTML file that is to be opened: `open page.html` means a page, `read page.html` its text.
pub(super) fn page_to_open(text: &str) -> Option<String> {
    let opens = tokens(text).any(|token| token.eq_ignore_ascii_case("open"));
    let is_page = |name: &String| name.ends_with(".html") || name.ends_with(".htm");
    file(text).filter(|name| opens && is_page(name))
}

/// Something that looks like a file: quoted, or with an extension.
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

/// The one word after "read", "print" or "show", such as README.
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

/// Something that looks like a path: a file, a token with a slash, or the word after "in" or "folder".
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

/// What follows one of these, without the mark that ends a sentence.
pub(super) fn rest(text: &str, marks: &[&str]) -> Option<String> {
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

/// A short name for a note: what stands before a colon, or its first words.
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

/// Subject, predicate and object; each can be quoted.
pub(super) fn three_words(text: &str) -> Option<(String, String, String)> {
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

/// The only word after one of these.
pub(super) fn after<'a>(text: &'a str, verbs: &[&str]) -> Option<&'a str> {
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

/// What comes before "with the words", and the words, which end a line.
pub(super) fn with_the_words(text: &str) -> Option<(&str, String)> {
    const MARKS: [&str; 6] = [
        " with the words ",
        " with the word ",
        " with the text ",
        " with the content ",
        " containing ",
        " saying ",
    ];
    let (before, words) = MARKS.iter().find_map(|mark| text.split_once(mark))?;
    let words = words.trim();
    let words = quoted(words)
        .filter(|inside| inside.len() + 2 == words.len())
        .unwrap_or_else(|| words.to_owned());
    (!words.is_empty()).then(|| (before, format!("{words}\n")))
}

/// What to search for: quoted, or all that follows.
pub(super) fn wanted(text: &str) -> Option<String> {
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
