//! What a server's tool is called here.

/// The longest name that a tool may have.
const LONGEST: usize = 64;

/// The name of a tool: the prefix, and the server's own name. Characters that a name may not have become `_`.
pub(crate) fn tool_name(prefix: &str, tool: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
        _ => '_',
    };
    let name = prefix.chars().chain(tool.chars()).map(plain);
    name.take(LONGEST).collect()
}

/// A text of somebody else's on one line, cut after so many characters.
pub(crate) fn line(text: &str, longest: usize) -> String {
    let plain = |c: char| match c.is_control() || c.is_whitespace() {
        true => ' ',
        false => c,
    };
    let mut shown: String = text.chars().take(longest).map(plain).collect();
    if text.chars().nth(longest).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_and_short_whatever_the_server_calls_its_tool() {
        assert_eq!(tool_name("git_", "git_status"), "git_git_status");
        assert_eq!(tool_name("a_", "read file/ü\n"), "a_read_file___");
        assert_eq!(tool_name("a_", "v1.list-all"), "a_v1.list-all");
        assert_eq!(tool_name("a_", &"x".repeat(100)).len(), 64);
    }

    #[test]
    fn a_line_holds_no_control_characters_and_says_when_it_was_cut() {
        assert_eq!(line("a\nb\u{1b}c", 10), "a b c");
        assert_eq!(line("abcdef", 3), "abc…");
    }
}
