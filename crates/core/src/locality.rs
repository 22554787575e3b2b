//! Decides whether a host is this machine. Credentials may be sent over plain HTTP only to this machine, and requests
//! to it never use a proxy.

use std::net::IpAddr;

/// Whether a host is certainly this machine: `localhost`, or a loopback address with or without brackets. Other names
/// are not resolved, not even those below `.localhost`, because a resolver may map them to another machine.
pub fn is_loopback_host(host: &str) -> bool {
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    match literal.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::is_loopback_host;

    #[test]
    fn only_literal_loopback_addresses_and_localhost_are_this_machine() {
        for host in [
            "localhost",
            "LocalHost",
            "127.0.0.1",
            "127.8.9.1",
            "[::1]",
            "::1",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in [
            "",
            // A resolver does not look a name with a dot at its end up in the hosts file.
            "localhost.",
            "0.0.0.0",
            "[::]",
            "x.localhost",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "127.evil.example",
            "10.0.0.1",
            "192.168.1.2",
            "[fd00::1]",
            "[::ffff:10.0.0.1]",
        ] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }
}
