//! What a session is called in a list: the beginning of the first thing that was said.

/// How many characters a title has at most.
const TITLE_CHARS: usize = 80;

/// The title that a session gets from its first message: the first line with words in it, cut between characters.
pub(crate) fn title_of(message: &str) -> &str {
    let line = message
        .trim_start()
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end();
    match line.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => &line[..end],
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_that_has_words() {
        assert_eq!(
            title_of("\n  \n  list the files \r\nand more"),
            "list the files"
        );
        assert_eq!(title_of(" \n "), "");
    }

    #[test]
    fn a_long_title_is_cut_between_characters() {
        let message = "ä€😀".repeat(40);
        assert_eq!(title_of(&message).chars().count(), TITLE_CHARS);
        assert!(message.starts_with(title_of(&message)));
    }
}
