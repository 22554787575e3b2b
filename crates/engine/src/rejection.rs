//! Parses `[REJECT]`. At the start of a reply it is a rejection, anywhere else it is ordinary text.

const MARK: &str = "[REJECT]";

/// Returns the reason if a reply without calls is a rejection.
pub fn reason(text: &str) -> Option<&str> {
    let text = without_formatting(text);
    let mark = text.get(..MARK.len())?;
    mark.eq_ignore_ascii_case(MARK).then(|| {
        text[MARK.len()..]
            .trim_start_matches([':', ' ', '-', '*', '_', '`'])
            .trim()
    })
}

/// Whether a character may precede the mark. Models like to format it as bold, code or a quotation.
fn is_formatting(c: char) -> bool {
    c.is_whitespace() || matches!(c, '*' | '_' | '`' | '>' | '#')
}

/// Returns what follows the characters that may precede the mark.
pub(crate) fn without_formatting(text: &str) -> &str {
    text.trim_start_matches(is_formatting)
}

/// Whether more text could still turn this beginning, without formatting, into a rejection, so it must not be published yet.
pub(crate) fn may_become_rejection(beginning: &str) -> bool {
    let length = beginning.len().min(MARK.len());
    beginning
        .get(..length)
        .is_some_and(|start| start.eq_ignore_ascii_case(&MARK[..length]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_is_the_first_word_of_a_reply() {
        assert_eq!(reason("[REJECT] not mine"), Some("not mine"));
        assert_eq!(reason(" \n\t[reject]: not mine\n"), Some("not mine"));
        assert_eq!(reason("[REJECT]"), Some(""));
        assert_eq!(reason("**[REJECT]** not mine"), Some("not mine"));
        assert_eq!(reason("> `[REJECT]` not mine"), Some("not mine"));
        assert_eq!(reason("the file says [REJECT] x"), None);
        assert_eq!(reason("[REJECTED] x"), None);
        assert_eq!(reason("[ré"), None);
    }

    #[test]
    fn a_beginning_is_held_back_while_it_may_become_a_rejection() {
        for beginning in ["", " ", "**", "\n[", "[rej", "[REJECT", "[REJECT] x"] {
            assert!(
                may_become_rejection(without_formatting(beginning)),
                "{beginning:?}"
            );
        }
        for beginning in ["H", "[a", "[REJECTS", "é"] {
            assert!(!may_become_rejection(beginning), "{beginning:?}");
        }
    }
}
