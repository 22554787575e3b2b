//! Where a card may lead: never from https down to http, and never from outside into a network of ours.
//!
//! A stranger who writes a card, or redirects it, must not be able to make lango talk to a service that only this machine
//! or this network can reach. Hosts are judged by how they are written. A name outside that resolves to an address inside
//! is stopped by its certificate: from a card that came by https, only https is followed.

use reqwest::Url;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far inside a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Zone {
    ThisMachine,
    OurNetwork,
    Outside,
}

/// Why one URL must not lead to the other; nothing if it may.
pub(crate) fn refusal(from: &Url, to: &Url) -> Option<String> {
    if !matches!(to.scheme(), "http" | "https") {
        return Some(format!("`{}` is neither http nor https", to.scheme()));
    }
    if !to.username().is_empty() || to.password().is_some() {
        return Some("it holds a name or password".to_owned());
    }
    let (near, far) = (zone(to), zone(from));
    if from.scheme() == "https" && to.scheme() == "http" && far != Zone::ThisMachine {
        return Some("it leads from https to http".to_owned());
    }
    if near < far && to.host_str() != from.host_str() {
        let place = match near {
            Zone::ThisMachine => "this machine",
            Zone::OurNetwork | Zone::Outside => "a private network",
        };
        return Some(format!("it leads from outside into {place}"));
    }
    None
}

/// Whether two URLs have the scheme, the host and the port in common.
pub(crate) fn is_same(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// The URL as it is shown: without a query, which may hold a key, and without a name or password.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    super::words::one_line(url.as_str(), 200)
}

/// Whether it is on this machine: what is said to it goes through no proxy.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    zone(url) == Zone::ThisMachine
}

fn zone(url: &Url) -> Zone {
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    let host = host.trim_end_matches('.');
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => zone_of_v4(address),
        Ok(IpAddr::V6(address)) => zone_of_v6(address),
        Err(_) => zone_of_name(host),
    }
}

fn zone_of_v4(address: Ipv4Addr) -> Zone {
    let [a, b, ..] = address.octets();
    if address.is_loopback() || a == 0 {
        Zone::ThisMachine
    } else if address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || (a == 100 && (64..128).contains(&b))
    {
        Zone::OurNetwork
    } else {
        Zone::Outside
    }
}

fn zone_of_v6(address: Ipv6Addr) -> Zone {
    if let Some(v4) = address.to_ipv4_mapped() {
        return zone_of_v4(v4);
    }
    if address.is_loopback() || address.is_unspecified() {
        Zone::ThisMachine
    } else if address.is_unique_local() || address.is_unicast_link_local() {
        Zone::OurNetwork
    } else {
        Zone::Outside
    }
}

fn zone_of_name(host: &str) -> Zone {
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| host.ends_with(suffix));
    if host == "localhost" || ends(&[".localhost"]) {
        Zone::ThisMachine
    } else if !host.contains('.') || ends(&[".local", ".internal", ".lan", ".home.arpa"]) {
        Zone::OurNetwork
    } else {
        Zone::Outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(from: &str, to: &str) -> Option<String> {
        refusal(&from.parse().unwrap(), &to.parse().unwrap())
    }

    #[test]
    fn a_card_leads_sideways_and_outwards() {
        for (from, to) in [
            ("https://a.example/x", "https://b.example/y"),
            ("https://a.example/x", "https://a.example:8443/y"),
            ("http://a.example/x", "https://b.example/y"),
            ("http://127.0.0.1:1/x", "http://localhost:2/y"),
            ("https://localhost/x", "http://localhost/y"),
            ("http://10.0.0.1/x", "http://10.0.0.2/y"),
            ("http://10.0.0.1/x", "https://b.example/y"),
            ("https://box/x", "https://box/y"),
        ] {
            assert_eq!(why(from, to), None, "{from} {to}");
        }
    }

    #[test]
    fn a_card_from_outside_does_not_lead_inside() {
        for to in [
            "https://127.0.0.1/",
            "https://0.0.0.0/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://localhost/",
            "https://localhost./",
            "https://x.localhost/",
            "https://2130706433/",
        ] {
            let why = why("https://a.example/", to).unwrap();
            assert_eq!(why, "it leads from outside into this machine", "{to}");
        }
        for to in [
            "https://10.1.2.3/",
            "https://192.168.0.1/",
            "https://172.16.0.1/",
            "https://169.254.169.254/",
            "https://100.64.0.1/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://metadata.google.internal/",
            "https://printer.local/",
            "https://intranet/",
        ] {
            let why = why("https://a.example/", to).unwrap();
            assert_eq!(why, "it leads from outside into a private network", "{to}");
        }
        assert!(why("http://10.0.0.1/", "http://127.0.0.1/").is_some());
        assert!(why("http://a.example/", "http://10.0.0.1/").is_some());
    }

    #[test]
    fn a_card_by_https_does_not_lead_to_http_or_elsewhere() {
        assert!(why("https://a.example/", "http://a.example/").is_some());
        assert!(why("https://10.0.0.1/", "http://10.0.0.1/").is_some());
        assert!(why("http://127.0.0.1/", "ftp://127.0.0.1/").is_some());
        assert!(why("http://127.0.0.1/", "http://u:p@127.0.0.1/").is_some());
    }

    #[test]
    fn what_is_shown_of_a_url_holds_no_secret() {
        let url = "https://u:p@a.example/x?key=secret#f".parse().unwrap();
        assert_eq!(shown(&url), "https://a.example/x");
    }
}
