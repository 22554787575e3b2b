//! Decides which services may receive a credential over plain HTTP, and redacts URLs for display.

use lango_core::is_loopback_host;
use std::fmt;
use url::Url;

/// Whether a credential may be sent over plain HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlainHttp {
    /// Only to this machine.
    #[default]
    LocalOnly,
    /// To the configured host, because the user allowed it, for example for a model server in their own network.
    Allowed,
}

/// A URL over which a credential would be sent unencrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnencryptedCredential {
    host: String,
}

impl fmt::Display for UnencryptedCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "plain http would send the key unencrypted to `{}`; use https",
            self.host
        )
    }
}

impl std::error::Error for UnencryptedCredential {}

impl PlainHttp {
    /// Checks that a credential may be sent to a URL.
    pub fn check(self, url: &Url) -> Result<(), UnencryptedCredential> {
        if url.scheme() == "https" || self == Self::Allowed || is_this_machine(url) {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        Err(UnencryptedCredential { host })
    }
}

/// Returns whether a URL is on this machine.
pub fn is_this_machine(url: &Url) -> bool {
    url.host_str().is_some_and(is_loopback_host)
}

/// Returns a URL without the parts that may be secret: user name, password, query and fragment.
pub fn redacted_url(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for URLs that cannot have a user name or password.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_credential_goes_over_plain_http_only_to_this_machine() {
        for allowed in [
            "https://api.example/v1",
            "http://127.0.0.1:11434/v1",
            "http://localhost/v1",
            "http://[::1]:1",
        ] {
            assert_eq!(
                PlainHttp::LocalOnly.check(&url(allowed)),
                Ok(()),
                "{allowed}"
            );
        }
        for refused in [
            "http://api.example/v1",
            "http://192.168.1.20:8000/v1",
            "http://127.0.0.1.example/v1",
            "http://localhost.example/v1",
            "http://example/?next=http://localhost",
        ] {
            let refusal = PlainHttp::LocalOnly.check(&url(refused)).unwrap_err();
            assert!(refusal.to_string().contains("unencrypted"), "{refused}");
            assert_eq!(PlainHttp::Allowed.check(&url(refused)), Ok(()), "{refused}");
        }
    }

    #[test]
    fn a_redacted_url_contains_no_secret() {
        let shown = redacted_url(&url("https://name:password@host.example/path?key=1#part"));
        assert_eq!(shown.as_str(), "https://host.example/path");
    }
}
