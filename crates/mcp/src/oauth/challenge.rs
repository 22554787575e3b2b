//! Parses the header `WWW-Authenticate`, with which a server refuses a request.

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Challenge {
    /// The address of the server's resource metadata.
    pub(crate) resource_metadata: Option<String>,
    /// The required scope.
    pub(crate) scope: Option<String>,
    /// Whether the token was valid but its scope insufficient.
    pub(crate) is_scope_insufficient: bool,
}

impl Challenge {
    /// Parses the header; ignores invalid parts.
    pub(crate) fn read(header: &str) -> Self {
        let mut challenge = Self::default();
        let parameters = match header.split_once(' ') {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("bearer") => rest,
            _ => return challenge,
        };
        for (name, value) in Parameters(parameters) {
            match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "scope" => challenge.scope = Some(value),
                "error" => challenge.is_scope_insufficient = value == "insufficient_scope",
                _ => {}
            }
        }
        challenge
    }
}

/// An iterator over `name="value"` and `name=value`, separated by commas.
struct Parameters<'a>(&'a str);

impl Iterator for Parameters<'_> {
    type Item = (String, String);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = self.0.split_once('=')?;
        let name = name.trim_matches([' ', ',', '\t']).to_owned();
        let rest = rest.trim_start();
        let (value, rest) = match rest.strip_prefix('"') {
            None => match rest.split_once(',') {
                Some((value, rest)) => (value.trim().to_owned(), rest),
                None => (rest.trim().to_owned(), ""),
            },
            Some(quoted) => unquoted(quoted),
        };
        self.0 = rest;
        Some((name, value))
    }
}

/// Returns the text up to its closing quote, unescaped, and what follows.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_parsed_in_any_order_quoting_and_case() {
        let header = r#"Bearer error="insufficient_scope", scope="a b, c", Resource_Metadata="https://x/\"y\"", realm=z"#;
        let expected = Challenge {
            resource_metadata: Some("https://x/\"y\"".to_owned()),
            scope: Some("a b, c".to_owned()),
            is_scope_insufficient: true,
        };
        assert_eq!(Challenge::read(header), expected);
        assert_eq!(
            Challenge::read("bearer scope=a"),
            Challenge {
                scope: Some("a".to_owned()),
                ..Challenge::default()
            }
        );
        for nothing in [
            "",
            "Bearer",
            "Basic realm=\"x\"",
            "Bearer \"",
            "Bearer =",
            "Bearer scope",
        ] {
            assert_eq!(
                Challenge::read(nothing).resource_metadata,
                None,
                "{nothing}"
            );
        }
    }
}
