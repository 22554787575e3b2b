//! Finds URLs that the user named. Opening one tells a site nothing beyond what the user chose to reveal. A URL that a
//! model composed, however, may contain anything the model has seen.

use super::Turn;
use lango_core::Inspection;

impl Turn {
    /// Marks the URL that a call opens as known if a message of the user contains it.
    pub(super) fn with_user_urls(&self, mut inspection: Inspection) -> Inspection {
        if let Some(site) = &mut inspection.site
            && let Some(url) = &site.url
        {
            let earlier = self.history.last(usize::MAX);
            let mut messages = std::iter::once(&self.state.question)
                .chain(earlier.map(|exchange| &exchange.question));
            site.is_known |= messages.any(|message| contains_url(message, url));
        }
        inspection
    }
}

/// Whether a text contains exactly this URL, not as part of another URL. The scheme and the trailing slash may be
/// missing in the text, because people often omit them.
fn contains_url(text: &str, url: &str) -> bool {
    let bare = without_scheme(url).trim_end_matches('/');
    // A single word such as `intranet` may occur in any sentence.
    let wanted = if bare.contains('.') {
        bare
    } else {
        url.trim_end_matches('/')
    };
    // A URL with a space would match text after the actual URL.
    let is_one_word = !wanted.contains(|c: char| c.is_whitespace() || c.is_control());
    if wanted.is_empty() || !is_one_word {
        return false;
    }
    text.match_indices(wanted).any(|(at, _)| {
        let before = text[..at]
            .trim_end_matches("https://")
            .trim_end_matches("http://");
        let after = &text[at + wanted.len()..];
        !before.ends_with(is_url_char) && ends_url(after)
    })
}

fn without_scheme(url: &str) -> &str {
    let rest = url.strip_prefix("https://");
    rest.or_else(|| url.strip_prefix("http://")).unwrap_or(url)
}

/// Whether a URL before this text is complete: only punctuation or closing brackets follow it.
fn ends_url(text: &str) -> bool {
    let text = text.strip_prefix('/').unwrap_or(text);
    let closing = |letter: char| ".,;:!?)]}>'\"`*_".contains(letter);
    let rest = text.trim_start_matches(closing);
    rest.is_empty() || rest.starts_with(char::is_whitespace)
}

fn is_url_char(letter: char) -> bool {
    letter.is_alphanumeric() || "-._~/:?#@!$&+,;=%".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::contains_url;

    #[test]
    fn a_url_matches_as_a_whole_or_not_at_all() {
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
            assert!(contains_url(text, url), "{text} {url}");
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
            assert!(!contains_url(text, url), "{text} {url}");
        }
    }
}
