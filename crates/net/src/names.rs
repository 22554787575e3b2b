//! Names that mean this machine or the local network wherever they are resolved, refused before anything is resolved.
//!
//! They are refused by name as well as by address: a local resolver may answer them with any address, and asking about
//! some of them tells the network what was asked.

/// Names that are refused, with everything below them.
const LOCAL: [&str; 18] = [
    "localhost",
    "localdomain",
    "localhost6",
    "ip6-localhost",
    "ip6-loopback",
    "broadcasthost",
    "local",
    "internal",
    "intranet",
    "private",
    "lan",
    "home",
    "home.arpa",
    "corp",
    "svc",
    "test",
    "invalid",
    "onion",
];

/// Whether a name is, or lies below, one that is local by convention. The name is in lower case, without a final dot.
pub(crate) fn is_local(name: &str) -> bool {
    LOCAL.iter().any(|local| {
        let before = name.strip_suffix(local);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}
