//! Where an address leads: to this machine or elsewhere, and whether others could listen on the way.

use reqwest::Url;
use std::net::IpAddr;

/// Whether what is sent to this address can be read by nobody on the way: it is encrypted, or stays on this machine.
pub fn is_private_way(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| match url.scheme() {
        "https" => true,
        "http" => is_this_machine(&url),
        _ => false,
    })
}

/// Whether the address is one of this machine's own.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_decides_whether_an_address_is_on_this_machine() {
        for here in [
            "http://localhost:1/x",
            "http://LOCALHOST",
            "http://127.0.0.1",
            "http://127.1.2.3:80/",
            "http://[::1]:2",
            "http://user@127.0.0.1/",
        ] {
            assert!(is_private_way(here), "{here}");
            assert!(is_this_machine(&Url::parse(here).unwrap()), "{here}");
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
            assert!(!is_private_way(elsewhere), "{elsewhere}");
            assert!(
                !is_this_machine(&Url::parse(elsewhere).unwrap()),
                "{elsewhere}"
            );
        }
        assert!(is_private_way("https://example.com/x"));
        assert!(!is_this_machine(
            &Url::parse("https://example.com/?x=://127.0.0.1").unwrap()
        ));
        for none in ["ftp://localhost", "file:///x", "localhost", ""] {
            assert!(!is_private_way(none), "{none}");
        }
    }
}
