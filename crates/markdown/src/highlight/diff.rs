//! Lines of unified diffs.

use super::{LineState, Token, TokenKind};

pub(super) const NAMES: &[&str] = &["diff", "patch", "udiff"];

/// Classifies a line. A hunk says how many lines it has, so that a removed line `-- comment` is not taken for the name
/// of a file.
pub(super) fn scan(line: &str, state: LineState) -> (Vec<Token>, LineState) {
    let (old, new) = match state {
        LineState::Hunk {
            line: Some(kind), ..
        } => return (whole_line(line, Some(kind)), state),
        LineState::Hunk { old, new, .. } => (old, new),
        _ => (0, 0),
    };
    let is_in_hunk = old > 0 || new > 0;
    let headers = [
        "--- ",
        "+++ ",
        "diff ",
        "index ",
        "new file",
        "deleted file",
        "rename ",
    ];
    let is_header = !is_in_hunk && headers.iter().any(|start| line.starts_with(start));
    let (kind, old, new) = match line.bytes().next() {
        _ if is_header => (Some(TokenKind::FileHeader), 0, 0),
        Some(b'@') if line.starts_with("@@") => {
            let (old, new) = hunk_lengths(line);
            (Some(TokenKind::Hunk), old, new)
        }
        Some(b'+') => (Some(TokenKind::Added), old, new.saturating_sub(1)),
        Some(b'-') => (Some(TokenKind::Removed), old.saturating_sub(1), new),
        Some(b'\\') => (Some(TokenKind::Comment), old, new),
        _ => (None, old.saturating_sub(1), new.saturating_sub(1)),
    };
    let tokens = whole_line(line, kind);
    let line = kind;
    (tokens, LineState::Hunk { old, new, line })
}

fn whole_line(line: &str, kind: Option<TokenKind>) -> Vec<Token> {
    let token = kind.map(|kind| Token {
        range: 0..line.len(),
        kind,
    });
    token.into_iter().collect()
}

/// Returns the numbers of lines in `@@ -1,5 +1,6 @@`: those of the old text and of the new one.
fn hunk_lengths(line: &str) -> (usize, usize) {
    let length = |sign: char| {
        let range = line.split(' ').find_map(|word| word.strip_prefix(sign))?;
        match range.split_once(',') {
            Some((_, length)) => length.parse().ok(),
            None => range.parse::<usize>().ok().map(|_| 1),
        }
    };
    (length('-').unwrap_or(0), length('+').unwrap_or(0))
}
