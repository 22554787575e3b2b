//! Finds words and phrases in a request: whole words, in any case, singular or plural.

use std::borrow::Cow;

/// Returns the words of a text in lower case. Appends the word "path" if the text contains a path, "web page" if it
/// asks to open a page, and "web address url" if it contains a URL.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = &without_command(text);
    let path = text
        .split_whitespace()
        .any(is_path)
        .then(|| "path".to_owned());
    let url: &[&str] = if super::extract::address(text).is_some() {
        &["web", "address", "url"]
    } else {
        &[]
    };
    let page: &[&str] = if super::extract::page_to_open(text).is_some() {
        &["web", "page"]
    } else {
        &[]
    };
    text.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .chain(path)
        .chain(page.iter().map(|word| (*word).to_owned()))
        .chain(url.iter().map(|word| (*word).to_owned()))
        .collect()
}

/// Removes the quoted command from a request to run it. Its words must not match rules: `curl https://…` is not a
/// request to read that page.
fn without_command(text: &str) -> Cow<'_, str> {
    let parts = text
        .split_once('`')
        .and_then(|(before, rest)| Some((before, rest.split_once('`')?.1)));
    let Some((before, after)) = parts else {
        return Cow::Borrowed(text);
    };
    let verb = before.split_whitespace().map(str::to_lowercase);
    if verb
        .into_iter()
        .any(|word| word == "run" || word == "execute")
    {
        Cow::Owned(format!("{before} {after}"))
    } else {
        Cow::Borrowed(text)
    }
}

fn is_path(token: &str) -> bool {
    let token = token.trim_end_matches(['.', ',', '?', '!', ';', ':']);
    let has_extension = token.rsplit_once('.').is_some_and(|(name, extension)| {
        !name.is_empty()
            && (1..=8).contains(&extension.len())
            && extension.chars().all(char::is_alphanumeric)
    });
    !token.contains("://") && (has_extension || (token.len() > 1 && token.contains('/')))
}

/// Returns whether the text contains the phrase.
pub(super) fn has_phrase(text: &[String], phrase: &str) -> bool {
    let phrase = words(phrase);
    !phrase.is_empty()
        && text
            .windows(phrase.len())
            .any(|window| window.iter().zip(&phrase).all(|(a, b)| same(a, b)))
}

fn same(word: &str, other: &str) -> bool {
    let stem = |word: &str| word.strip_suffix('s').map_or(word.len(), str::len);
    word == other
        || (word.len() > 3 && other.len() > 3 && word[..stem(word)] == other[..stem(other)])
}

/// Splits a request into parts that different agents can do. It splits at an "and" only if `is_complete` accepts the
/// parts on both sides as requests.
pub(super) fn parts(text: &str, is_complete: impl Fn(&str) -> bool) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for sentence in sentences(text) {
        let mut pending = String::new();
        for piece in sentence
            .split(" and ")
            .flat_map(|piece| piece.split(", then "))
        {
            let piece = piece
                .trim()
                .trim_start_matches("then ")
                .trim_end_matches(',')
                .trim();
            if !pending.is_empty() && is_complete(&pending) && is_complete(piece) {
                parts.push(std::mem::take(&mut pending));
            }
            if !pending.is_empty() {
                pending.push_str(" and ");
            }
            pending.push_str(piece);
        }
        if !pending.is_empty() {
            parts.push(pending);
        }
    }
    parts
}

/// Splits a text into sentences. Punctuation ends a sentence only before white space, so `notes.md` stays in one piece.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    // Text between backticks is never split.
    let mut is_quoted = false;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        is_quoted ^= c == '`';
        if is_quoted && text[at + c.len_utf8()..].contains('`') {
            continue;
        }
        let ends = matches!(c, '.' | '?' | '!' | ';')
            && characters
                .peek()
                .is_none_or(|(_, next)| next.is_whitespace());
        if ends || c == '\n' {
            sentences.push(text[start..at].trim());
            start = at + c.len_utf8();
        }
    }
    sentences.push(text[start..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_match_whole_words_in_singular_or_plural() {
        let text = words("What FILES are here?");
        assert!(has_phrase(&text, "file") && has_phrase(&text, "are here"));
        assert!(!has_phrase(&text, "fil") && !has_phrase(&text, "her"));
    }

    #[test]
    fn a_request_is_split_where_both_sides_are_requests() {
        let alone = |part: &str| part.contains("list") || part.contains("plan");
        assert_eq!(
            parts("list files and folders", alone),
            ["list files and folders"]
        );
        assert_eq!(
            parts("list files, and plan my day", alone),
            ["list files", "plan my day"]
        );
        assert_eq!(
            parts("read notes.md. Then list all", alone),
            ["read notes.md", "Then list all"]
        );
    }
}
