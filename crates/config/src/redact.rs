//! Removes secrets from text that is shown: passwords and tokens in addresses, and values of options with
//! secret-sounding names. Such text is often shared, for example in bug reports.

use std::borrow::Cow;

/// The replacement for a secret.
const HIDDEN: &str = "…";

/// If the name of a parameter or an option contains one of these, its value is secret.
const SECRET_NAMES: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "auth",
    "credential",
    "signature",
    "jwt",
];

/// Short names that mark a value as secret only if they are the whole name.
const EXACT_SECRET_NAMES: [&str; 5] = ["key", "sig", "pass", "code", "pat"];

/// Hides the secrets in the addresses of a text: the password before the host (for web addresses everything before
/// it), and the values of parameters such as `token`.
pub fn redact(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at);
        let after = &after["://".len()..];
        let end = after.find(ends_address).unwrap_or(after.len());
        let (address, following) = after.split_at(end);
        let scheme = before.rsplit(|letter: char| !is_scheme(letter)).next();
        let scheme = scheme.unwrap_or_default();
        out.push_str(before);
        out.push_str("://");
        push_address(&mut out, scheme, address);
        rest = following;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Hides the secrets in a configuration value: in addresses, and the values of a program's options.
pub fn redact_value(value: toml::Value) -> toml::Value {
    match value {
        toml::Value::String(text) => redact_option(&text).into(),
        toml::Value::Array(items) => {
            let mut follows_secret_option = false;
            let items = items.into_iter().map(|item| {
                let hides = std::mem::take(&mut follows_secret_option);
                let option = item.as_str().filter(|text| text.starts_with('-'));
                follows_secret_option = option.is_some_and(is_secret_name);
                if hides && option.is_none() {
                    HIDDEN.into()
                } else {
                    redact_value(item)
                }
            });
            toml::Value::Array(items.collect())
        }
        toml::Value::Table(table) => {
            let entries = table.into_iter();
            let entries = entries.map(|(name, value)| (name, redact_value(value)));
            toml::Value::Table(entries.collect())
        }
        other => other,
    }
}

/// Redacts one argument of a command line: `--token=abc` loses its value.
fn redact_option(text: &str) -> String {
    match text.split_once('=') {
        Some((name, _)) if name.starts_with('-') && is_secret_name(name) => {
            format!("{name}={HIDDEN}")
        }
        _ => redact(text).into_owned(),
    }
}

fn push_address(out: &mut String, scheme: &str, address: &str) {
    let authority_end = address.find(['/', '?', '#']).unwrap_or(address.len());
    // A password that was not escaped correctly may contain a slash or another `@`.
    let user_end = match address[..authority_end].rfind('@') {
        Some(at) => Some(at),
        None => misplaced_user_end(address),
    };
    let mut rest = address;
    if let Some(at) = user_end {
        let user = &address[..at];
        let is_web = matches!(
            scheme.to_ascii_lowercase().as_str(),
            "http" | "https" | "ws" | "wss"
        );
        match user.split_once(':') {
            _ if is_web => out.push_str(HIDDEN),
            Some((name, _)) => {
                out.push_str(name);
                out.push(':');
                out.push_str(HIDDEN);
            }
            None => out.push_str(user),
        }
        rest = &address[at..];
    }
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    out.push_str(path);
    let Some(query) = query else {
        return;
    };
    for (index, pair) in query.split('&').enumerate() {
        out.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if is_secret_name(name) => {
                out.push_str(name);
                out.push('=');
                out.push_str(HIDDEN);
            }
            _ => out.push_str(pair),
        }
    }
}

/// Returns the end of `user:pass/word@`, if an address starts with that.
fn misplaced_user_end(address: &str) -> Option<usize> {
    let end = address.find(['?', '#']).unwrap_or(address.len());
    let at = address[..end].rfind('@')?;
    let colon = address[..at].find(':')?;
    // `host:8000/@name` is a port and a path.
    let port_end = address[colon + 1..].find(|letter: char| !letter.is_ascii_digit());
    let is_port =
        port_end.is_some_and(|end| end > 0 && address[colon + 1 + end..].starts_with('/'));
    (!is_port).then_some(at)
}

/// Returns whether a value with this name is probably secret, such as `API_TOKEN`.
pub fn is_secret_name(name: &str) -> bool {
    let normalized: String = name
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    EXACT_SECRET_NAMES.contains(&normalized.as_str())
        || SECRET_NAMES.iter().any(|part| normalized.contains(part))
}

fn is_scheme(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.')
}

/// Returns whether a character ends an address in running text.
fn ends_address(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '`' | '"' | '\'' | '<' | '>' | ')' | ']' | '}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_secret_parameters_of_addresses_are_hidden() {
        for (text, shown) in [
            ("http://u:pw@h:8000/v1", "http://…@h:8000/v1"),
            ("https://ghp_abc@h/x", "https://…@h/x"),
            ("postgres://u:pw@h/db", "postgres://u:…@h/db"),
            ("postgres://u@h/db", "postgres://u@h/db"),
            ("postgres://u:p/w@x@h/db", "postgres://u:…@h/db"),
            ("http://h/v1?api_key=abc&x=1", "http://h/v1?api_key=…&x=1"),
            (
                "http://h/?x=1&access-token=a#f",
                "http://h/?x=1&access-token=…",
            ),
            ("http://h/?key=a", "http://h/?key=…"),
            (
                "http://h:80/@name?keyboard=1",
                "http://h:80/@name?keyboard=1",
            ),
            (
                "see `http://u:p@h/` and (ftp://a:b@c)",
                "see `http://…@h/` and (ftp://a:…@c)",
            ),
            ("no address: a@b:c", "no address: a@b:c"),
            ("“https://u:p@h/x”", "“https://…@h/x”"),
            ("é://x", "é://x"),
        ] {
            assert_eq!(redact(text), shown);
        }
    }

    #[test]
    fn secret_options_of_a_program_are_hidden() {
        let words = [
            "run",
            "--token",
            "abc",
            "--api-key=def",
            "--level",
            "debug",
            "x://a:b@c",
        ];
        let value = toml::Value::from(words.to_vec());
        let shown = [
            "run",
            "--token",
            "…",
            "--api-key=…",
            "--level",
            "debug",
            "x://a:…@c",
        ];
        assert_eq!(redact_value(value), toml::Value::from(shown.to_vec()));
    }
}
