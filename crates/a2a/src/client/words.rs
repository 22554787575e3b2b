//! Strangers' words, made fit for prompts, errors and the screen: bounded, without control characters.

/// Turns foreign text into one line of at most `most` characters, with a mark where it was cut.
pub(crate) fn one_line(text: &str, most: usize) -> String {
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
        if count + wanted > most {
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

/// Drops what could steer a terminal; lines and tabs stay.
pub(crate) fn without_controls(text: &str) -> String {
    text.chars()
        .filter(|&c| matches!(c, '\n' | '\t') || !is_control(c))
        .collect()
}

fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Characters that show nothing and can hide or turn round what stands beside them.
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
    fn foreign_text_becomes_one_bounded_line() {
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
    fn lines_and_tabs_stay_and_escapes_go() {
        assert_eq!(without_controls("a\r\n\tb\u{1b}[0m\u{9b}é"), "a\n\tb[0mé");
    }
}
