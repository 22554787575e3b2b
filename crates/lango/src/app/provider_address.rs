//! The address of a provider, as users write it.

use crate::app::Failure;
use lango_net::{Url, is_this_machine, redacted_url};

/// An address that does not start with `http://` or `https://`.
#[derive(Debug)]
pub(crate) struct MissingScheme {
    /// What to do about it.
    pub next: String,
}

/// Returns the address with its scheme: one on this machine without a scheme gets `http://`. For other hosts the user
/// must decide, because a key may be sent there.
pub(crate) fn with_scheme(address: &str) -> Result<String, MissingScheme> {
    if ["http://", "https://"]
        .iter()
        .any(|scheme| address.starts_with(scheme))
    {
        return Ok(address.to_owned());
    }
    let has_other = address.contains("://");
    let url = Url::parse(&format!("http://{address}")).ok();
    match url.filter(|_| !has_other) {
        Some(url) if is_this_machine(&url) => Ok(format!("http://{address}")),
        Some(url) => {
            let shown = redacted_url(&url).to_string();
            let shown = shown.replacen("http://", "https://", 1);
            let next = format!("write {}", shown.trim_end_matches('/'));
            Err(MissingScheme { next })
        }
        None => Err(MissingScheme {
            next: "write the address of the API, such as http://127.0.0.1:8000/v1".to_owned(),
        }),
    }
}

/// Checks the address of a server, and returns it with its scheme and without a slash at its end.
pub fn check_address(address: &str) -> Result<String, Failure> {
    let address = address.trim().trim_end_matches('/');
    let address = with_scheme(address).map_err(|missing| {
        Failure::usage("the address must start with http:// or https://").next(missing.next)
    })?;
    let invalid = |problem: &str| {
        Failure::usage(format!("the address cannot be used: {problem}"))
            .next("give the address of the API, such as http://127.0.0.1:8000/v1")
    };
    let url = Url::parse(&address).map_err(|error| invalid(&error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        let shown = redacted_url(&url);
        return Err(invalid(&format!(
            "it contains a user name or password; use {shown} and a key"
        )));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_on_this_machine_gets_a_scheme() {
        for (typed, address) in [
            ("127.0.0.1:8931", "http://127.0.0.1:8931"),
            ("localhost:8000/v1/", "http://localhost:8000/v1"),
            (" LocalHost ", "http://LocalHost"),
            ("[::1]:80/v1", "http://[::1]:80/v1"),
            ("https://api.example.com/v1", "https://api.example.com/v1"),
        ] {
            assert_eq!(check_address(typed).unwrap(), address);
        }
        for (typed, next) in [
            ("api.example.com/v1", "write https://api.example.com/v1"),
            ("10.0.0.7:8000", "write https://10.0.0.7:8000"),
            (
                "localhost.example.com",
                "write https://localhost.example.com",
            ),
            (
                "ann:canary@api.example.com",
                "write https://api.example.com",
            ),
            ("ftp://127.0.0.1", "such as http://127.0.0.1:8000/v1"),
            ("", "such as http://127.0.0.1:8000/v1"),
            ("two words", "such as http://127.0.0.1:8000/v1"),
        ] {
            let failure = check_address(typed).unwrap_err().to_string();
            assert!(failure.ends_with(next), "{typed}: {failure}");
            assert!(failure.contains("http://"), "{failure}");
            assert!(!failure.contains("canary"), "{failure}");
        }
        let failure = check_address("ann:canary@127.0.0.1:80").unwrap_err();
        assert!(failure.to_string().contains("user name or password"));
    }
}
