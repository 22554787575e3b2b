//! Replaces a placeholder in the value of a header. The placeholder may be the whole value, follow the name of an
//! authentication scheme, or be the user name or password of Basic credentials.
//!
//! Other text around a placeholder is refused. If a program could choose the text before the value, and a server echoed
//! only the start of a header, the program could find out the value piece by piece.

use base64::Engine as _;
use base64::alphabet::STANDARD as STANDARD_ALPHABET;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hyper::header::HeaderValue;
use zeroize::Zeroizing;

/// The names of authentication schemes that may precede a placeholder.
const SCHEMES: [&str; 10] = [
    "bearer", "token", "bot", "apikey", "api-key", "key", "ssws", "geniekey", "splunk", "oauth",
];

/// The maximum length of the other part of Basic credentials, next to the placeholder.
const MAX_OTHER_PART: usize = 64;

/// The parsed value of a header with placeholders.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Substitution {
    scheme: Option<String>,
    content: Content,
}

#[derive(Debug, PartialEq, Eq)]
enum Content {
    Alone(usize),
    /// The user name, and the password if there is a colon.
    Basic(Part, Option<Part>),
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Plain(String),
    Secret(usize),
}

impl Substitution {
    /// Finds the placeholders in a value. Returns `None` if they are not in an allowed position.
    pub(super) fn find<'a>(
        value: &[u8],
        placeholders: impl Iterator<Item = (usize, &'a str)> + Clone,
    ) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?.trim();
        let secret = |text: &str| {
            let mut placeholders = placeholders.clone();
            placeholders.find(|(_, placeholder)| *placeholder == text)
        };
        let Some((scheme, rest)) = text.split_once(' ') else {
            let (index, _) = secret(text)?;
            let content = Content::Alone(index);
            return Some(Self {
                scheme: None,
                content,
            });
        };
        let rest = rest.trim();
        let lower = scheme.to_ascii_lowercase();
        let content = if lower == "basic" {
            let part = |text: &str| match secret(text) {
                Some((index, _)) => Some(Part::Secret(index)),
                None => is_plain(text).then(|| Part::Plain(text.to_owned())),
            };
            let decoded = decode(rest)?;
            match decoded.split_once(':') {
                Some((user, password)) => Content::Basic(part(user)?, Some(part(password)?)),
                None => Content::Basic(part(&decoded)?, None),
            }
        } else if SCHEMES.contains(&lower.as_str()) {
            Content::Alone(secret(rest)?.0)
        } else {
            return None;
        };
        let scheme = Some(scheme.to_owned());
        let substitution = Self { scheme, content };
        let has_secret = substitution.secrets().next().is_some();
        has_secret.then_some(substitution)
    }

    /// Returns the indexes of the secrets whose values are needed.
    pub(super) fn secrets(&self) -> impl Iterator<Item = usize> {
        let secret = |part: &Part| match part {
            Part::Secret(index) => Some(*index),
            Part::Plain(_) => None,
        };
        let secrets = match &self.content {
            Content::Alone(index) => [Some(*index), None],
            Content::Basic(user, password) => [secret(user), password.as_ref().and_then(secret)],
        };
        secrets.into_iter().flatten()
    }

    /// Builds the value of the header. Returns `None` if a secret value cannot be sent in a header.
    pub(super) fn fill<'a>(&self, value: impl Fn(usize) -> &'a [u8]) -> Option<HeaderValue> {
        let mut text = Zeroizing::new(Vec::new());
        if let Some(scheme) = &self.scheme {
            text.extend_from_slice(scheme.as_bytes());
            text.push(b' ');
        }
        match &self.content {
            Content::Alone(index) => text.extend_from_slice(value(*index)),
            Content::Basic(user, password) => {
                let bytes = |part: &Part| match part {
                    Part::Plain(text) => Zeroizing::new(text.clone().into_bytes()),
                    Part::Secret(index) => Zeroizing::new(value(*index).to_vec()),
                };
                let mut decoded = bytes(user);
                if password.is_some() && decoded.contains(&b':') {
                    return None;
                }
                if let Some(password) = password {
                    decoded.push(b':');
                    decoded.extend_from_slice(&bytes(password));
                }
                text.extend_from_slice(Zeroizing::new(STANDARD.encode(&*decoded)).as_bytes());
            }
        }
        let mut value = HeaderValue::from_bytes(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// Decodes base64 with or without padding.
fn decode(text: &str) -> Option<String> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&STANDARD_ALPHABET, config);
    String::from_utf8(engine.decode(text).ok()?).ok()
}

fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+-$".contains(&byte);
    text.len() <= MAX_OTHER_PART && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACEHOLDER: &str = "lango_secret_0123456789abcdef0123456789abcdef";

    fn fill(value: &str) -> Option<String> {
        let substitution = Substitution::find(value.as_bytes(), [(7, PLACEHOLDER)].into_iter())?;
        let filled = substitution.fill(|index| {
            assert_eq!(index, 7);
            b"ghp_value"
        });
        let filled = filled?;
        assert!(filled.is_sensitive());
        Some(filled.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_placeholder_is_replaced_alone_after_a_scheme_and_in_basic_credentials() {
        assert_eq!(fill(PLACEHOLDER).unwrap(), "ghp_value");
        assert_eq!(
            fill(&format!("Bearer {PLACEHOLDER}")).unwrap(),
            "Bearer ghp_value"
        );
        assert_eq!(
            fill(&format!("token {PLACEHOLDER}")).unwrap(),
            "token ghp_value"
        );
        for (credentials, expected) in [
            (
                format!("x-access-token:{PLACEHOLDER}"),
                "x-access-token:ghp_value",
            ),
            (
                format!("{PLACEHOLDER}:x-oauth-basic"),
                "ghp_value:x-oauth-basic",
            ),
            (format!("{PLACEHOLDER}:"), "ghp_value:"),
            (PLACEHOLDER.to_owned(), "ghp_value"),
        ] {
            let expected = format!("Basic {}", STANDARD.encode(expected));
            let value = format!("Basic {}", STANDARD.encode(&credentials));
            assert_eq!(fill(&value).unwrap(), expected);
            assert_eq!(fill(value.trim_end_matches('=')).unwrap(), expected);
        }
    }

    #[test]
    fn other_text_around_a_placeholder_is_refused() {
        let long = "a".repeat(MAX_OTHER_PART + 1);
        for value in [
            format!("xxxx{PLACEHOLDER}"),
            format!("{PLACEHOLDER}xxxx"),
            format!("Bearer x {PLACEHOLDER}"),
            format!("Padding {PLACEHOLDER}"),
            format!("Bearer {PLACEHOLDER} {PLACEHOLDER}"),
            format!("Basic {}", STANDARD.encode(format!("{long}:{PLACEHOLDER}"))),
            format!("Basic {}", STANDARD.encode(format!("a:b{PLACEHOLDER}"))),
            format!("Basic {PLACEHOLDER}"),
        ] {
            assert_eq!(fill(&value), None, "{value}");
        }
    }

    #[test]
    fn a_value_with_a_line_break_or_a_colon_in_the_user_name_is_refused() {
        let find = |value: &str| {
            Substitution::find(value.as_bytes(), [(0, PLACEHOLDER)].into_iter()).unwrap()
        };
        assert!(find(PLACEHOLDER).fill(|_| b"a\r\nb: c").is_none());
        let user = STANDARD.encode(format!("{PLACEHOLDER}:x"));
        assert!(find(&format!("Basic {user}")).fill(|_| b"a:b").is_none());
    }
}
