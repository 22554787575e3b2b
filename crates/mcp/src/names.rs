//! Converts third-party text to names of tools, and to single lines.

/// Maximum length of a tool's name.
const MAX_CHARACTERS: usize = 64;

/// Returns the name by which agents call a tool: the prefix, then the server's name for the tool. Invalid characters
/// become `_`.
pub(crate) fn tool_name(prefix: &str, tool: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
        _ => '_',
    };
    let name = prefix.chars().chain(tool.chars()).map(plain);
    name.take(MAX_CHARACTERS).collect()
}

/// Returns a third-party text on one line, truncated to this number of characters.
pub(crate) fn one_line(text: &str, max_characters: usize) -> String {
    let plain = |c: char| {
        if c.is_control() || c.is_whitespace() {
            ' '
        } else {
            c
        }
    };
    let mut shown: String = text.chars().take(max_characters).map(plain).collect();
    if text.chars().nth(max_characters).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_name_is_always_valid_and_short() {
        assert_eq!(tool_name("git_", "git_status"), "git_git_status");
        assert_eq!(tool_name("a_", "read file/ü\n"), "a_read_file___");
        assert_eq!(tool_name("a_", "v1.list-all"), "a_v1.list-all");
        assert_eq!(tool_name("a_", &"x".repeat(100)).len(), 64);
    }

    #[test]
    fn a_line_has_no_control_characters_and_an_ellipsis_if_truncated() {
        assert_eq!(one_line("a\nb\u{1b}c", 10), "a b c");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
