//! The entries of host lists.

use crate::support::url;
use lango_net::{Egress, EgressLimits, EgressRules, Host, HostPattern};

fn host(text: &str) -> Host {
    let rules = EgressRules {
        allow: ["0.0.0.0/0", "::/0", "localhost"]
            .map(|text| text.parse().unwrap())
            .into(),
        deny: Vec::new(),
    };
    let egress = Egress::new(rules, EgressLimits::default());
    let checked = egress.check(&url(&format!("http://{text}/")));
    checked.unwrap().host().clone()
}

fn matches(pattern: &str, text: &str, port: u16) -> bool {
    let pattern: HostPattern = pattern.parse().unwrap();
    pattern.matches(&host(text), port)
}

#[test]
fn a_name_matches_only_itself_in_every_spelling() {
    assert!(matches("example.com", "example.com", 80));
    assert!(matches("Example.COM", "EXAMPLE.com.", 443));
    assert!(matches("bücher.example", "xn--bcher-kva.example", 443));
    assert!(!matches("example.com", "www.example.com", 443));
    assert!(!matches("example.com", "example.com.evil.org", 443));
    assert!(!matches("example.com", "notexample.com", 443));
}

#[test]
fn a_star_matches_subdomains_but_not_the_name_itself() {
    assert!(matches("*.example.com", "www.example.com", 80));
    assert!(matches("*.example.com", "a.b.example.com", 80));
    assert!(!matches("*.example.com", "example.com", 80));
    assert!(!matches("*.example.com", "evilexample.com", 80));
    assert!(!matches("*.example.com", "www.example.com.evil.org", 80));
}

#[test]
fn an_entry_with_a_port_matches_only_that_port() {
    assert!(matches("example.com:8080", "example.com", 8080));
    assert!(!matches("example.com:8080", "example.com", 80));
    assert!(!matches("*.example.com:8080", "a.example.com", 80));
    assert!(matches("10.0.0.5:8080", "10.0.0.5", 8080));
    assert!(!matches("10.0.0.5:8080", "10.0.0.5", 80));
}

#[test]
fn networks_match_only_literal_addresses() {
    assert!(matches("10.0.0.0/8", "10.255.0.1", 80));
    assert!(matches("10.0.0.0/8", "0xa.1", 80));
    assert!(matches("10.0.0.0/8", "[::ffff:10.0.0.1]", 80));
    assert!(!matches("10.0.0.0/8", "11.0.0.1", 80));
    assert!(!matches("10.0.0.0/8", "example.com", 80));
    assert!(matches("fd00::/8", "[fd12::1]", 80));
    assert!(!matches("fd00::/8", "[fc12::1]", 80));
    assert!(matches("[::1]:80", "[::1]", 80));
    assert!(matches("::1", "[::1]", 8080));
    assert!(matches("0.0.0.0/0", "1.2.3.4", 80));
}

#[test]
fn an_entry_is_displayed_as_it_was_written() {
    for text in [
        "example.com",
        "*.example.com",
        "host:8080",
        "10.0.0.5:8080",
        "[::1]:80",
        "10.0.0.0/8",
        "fd00::/8",
        "*",
        "*:443",
    ] {
        let pattern: HostPattern = text.parse().unwrap();
        assert_eq!(pattern.to_string(), text);
    }
}

#[test]
fn an_invalid_entry_is_refused_with_the_problem_and_examples() {
    for (text, problem) in [
        ("", "neither a name nor an address"),
        ("http://example.com", "leave out the scheme"),
        ("user@example.com", "leave out the user"),
        ("example.com/path", "a network is an address"),
        ("10.0.0.0/33", "prefix length of a network"),
        ("10.0.0.0/8:80", "prefix length of a network"),
        ("example.com:0", "a port from 1 to 65535"),
        ("example.com:http", "a port from 1 to 65535"),
        ("example.com:+80", "a port from 1 to 65535"),
        ("*.10.0.0.1", "must be followed by a name"),
        ("7", "four decimal numbers"),
        ("0x7f.1:80", "four decimal numbers"),
        ("a..b", "single dots"),
        ("exa mple.com", "neither a name nor an address"),
        ("a*.example.com", "letters, digits"),
    ] {
        let error = text.parse::<HostPattern>().unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
        assert!(error.contains("write `example.com`"), "{text}: {error}");
    }
}
