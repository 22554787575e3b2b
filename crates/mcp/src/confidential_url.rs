//! Checks whether traffic to a URL is confidential.

use lango_net::{PlainHttp, Url};

/// Returns whether traffic to this URL cannot be read in transit, because it is encrypted or stays on this machine.
pub fn is_confidential_url(url: &str) -> bool {
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https");
    Url::parse(url).is_ok_and(|url| is_http(&url) && PlainHttp::LocalOnly.check(&url).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_this_machine_are_confidential() {
        for here in [
            "http://localhost:1/x",
            "http://LOCALHOST",
            "http://127.0.0.1",
            "http://127.1.2.3:80/",
            "http://[::1]:2",
            "http://user@127.0.0.1/",
        ] {
            assert!(is_confidential_url(here), "{here}");
        }
        for elsewhere in [
            "http://example.com",
            "http://127.example.com",
            "http://localhost.example.com",
            "http://127.0.0.1@example.com/",
            "http://example.com/http://127.0.0.1",
            "http://example.com/?next=http://localhost",
            "http://[::2]",
        ] {
            assert!(!is_confidential_url(elsewhere), "{elsewhere}");
        }
        assert!(is_confidential_url("https://example.com/x"));
        for none in ["ftp://localhost", "file:///x", "localhost", ""] {
            assert!(!is_confidential_url(none), "{none}");
        }
    }
}
