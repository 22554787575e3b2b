//! Sanitizes untrusted text for prompts, errors and the screen: limits its length and removes control characters.

/// Turns untrusted text into one line of at most `max_chars` characters. A longer text is cut and ends with `…`.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let mut count = 0;
    let mut is_gap = false;
    for c in text.chars() {
        if c.is_whitespace() || is_control(c) {
            is_gap = count > 0;
            continue;
        }
        if is_invisible(c) {
            continue;
        }
        let wanted = if is_gap { 2 } else { 1 };
        if count + wanted > max_chars {
            line.push('…');
            return line;
        }
        if std::mem::take(&mut is_gap) {
            line.push(' ');
        }
        line.push(c);
        count += wanted;
    }
    line
}

/// Removes control characters, which could control a terminal, except line feeds and tabs.
pub(crate) fn without_controls(text: &str) -> String {
    text.chars()
        .filter(|&c| matches!(c, '\n' | '\t') || !is_control(c))
        .collect()
}

fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns whether a character is invisible. Such characters can hide or reorder the text next to them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_becomes_one_line_of_limited_length() {
        assert_eq!(
            one_line("  a \r\n\tb\u{1b}[31mc\u{2028}d ", 99),
            "a b [31mc d"
        );
        assert_eq!(one_line("ab\u{202e}cd\u{200b}e", 99), "abcde");
        assert_eq!(one_line("abcdef", 3), "abc…");
        assert_eq!(one_line("ab cd", 3), "ab…");
        assert_eq!(one_line("abc", 3), "abc");
        assert_eq!(one_line("é".repeat(9).as_str(), 2), "éé…");
    }

    #[test]
    fn line_feeds_and_tabs_stay_and_escapes_are_removed() {
        assert_eq!(without_controls("a\r\n\tb\u{1b}[0m\u{9b}é"), "a\n\tb[0mé");
    }
}
