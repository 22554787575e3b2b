//! Which addresses the user named. Opening one of those tells a site nothing that the user did not choose to tell it, unlike
//! an address that a model composed, which may carry anything the model was shown.

use super::Turn;
use lango_core::Inspection;

impl Turn {
    /// Marks the address that a call opens as known if a message of the user has it.
    pub(super) fn with_user_addresses(&self, mut inspection: Inspection) -> Inspection {
        if let Some(site) = &mut inspection.site
            && let Some(url) = &site.url
        {
            let earlier = self.history.last(usize::MAX);
            let mut messages =
                std::iter::once(&self.state.question).chain(earlier.map(|past| &past.question));
            site.is_known |= messages.any(|message| names_address(message, url));
        }
        inspection
    }
}

/// Whether a text has this address as a whole: not as the beginning of a longer one, and not inside of another. The scheme
/// and a slash at the end may be missing in the text, as people write them.
fn names_address(text: &str, url: &str) -> bool {
    let bare = without_scheme(url).trim_end_matches('/');
    // A single word such as `intranet` may be in any sentence.
    let wanted = if bare.contains('.') {
        bare
    } else {
        url.trim_end_matches('/')
    };
    // With a space in it, it would take up words that follow the address.
    let is_one_word = !wanted.contains(|c: char| c.is_whitespace() || c.is_control());
    if wanted.is_empty() || !is_one_word {
        return false;
    }
    text.match_indices(wanted).any(|(at, _)| {
        let before = text[..at]
            .trim_end_matches("https://")
            .trim_end_matches("http://");
        let after = &text[at + wanted.len()..];
        !before.ends_with(is_address_letter) && ends_address(after)
    })
}

fn without_scheme(url: &str) -> &str {
    let rest = url.strip_prefix("https://");
    rest.or_else(|| url.strip_prefix("http://")).unwrap_or(url)
}

/// Whether an address that stands before this text is over: nothing follows but what closes a sentence or a bracket.
fn ends_address(text: &str) -> bool {
    let text = text.strip_prefix('/').unwrap_or(text);
    let closing = |letter: char| ".,;:!?)]}>'\"`*_".contains(letter);
    let rest = text.trim_start_matches(closing);
    rest.is_empty() || rest.starts_with(char::is_whitespace)
}

fn is_address_letter(letter: char) -> bool {
    letter.is_alphanumeric() || "-._~/:?#@!$&+,;=%".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::names_address;

    #[test]
    fn an_address_is_named_as_a_whole_or_not_at_all() {
        let named = [
            (
                "read https://a.example/x?y=1 please",
                "https://a.example/x?y=1",
            ),
            ("read https://a.example/x.", "https://a.example/x"),
            ("(see <https://a.example/x>)", "https://a.example/x"),
            ("open a.example", "https://a.example/"),
            ("open a.example/docs/, then stop", "https://a.example/docs"),
            ("**https://a.example**", "https://a.example/"),
        ];
        for (text, url) in named {
            assert!(names_address(text, url), "{text} {url}");
        }
        let other = [
            ("read https://a.example/x?y=1", "https://a.example/x"),
            ("read https://a.example/x", "https://a.example/x?secret=1"),
            ("read https://a.example.org", "https://a.example"),
            ("read https://b.a.example", "https://a.example"),
            ("read https://evil.test/a.example", "https://a.example"),
            ("mail ada@a.example", "https://a.example"),
            ("what is an intranet", "https://intranet/"),
            (
                "open https://a.example/x and my PIN is 1",
                "https://a.example/x and my PIN is 1",
            ),
            ("", "https://a.example"),
            ("x", "https://"),
        ];
        for (text, url) in other {
            assert!(!names_address(text, url), "{text} {url}");
        }
    }
}
