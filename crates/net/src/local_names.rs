//! Names that always refer to this machine or the local network. The guard refuses them before any lookup.
//!
//! Checking only their addresses would not be enough: a local resolver may answer with any address, and the lookup
//! alone can leak a name to the network.

/// The refused names. Their subdomains are refused too.
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

/// Returns whether a name, or a domain that contains it, is local by convention. The name must be in lower case,
/// without a final dot.
pub(crate) fn is_local(name: &str) -> bool {
    LOCAL.iter().any(|local| {
        let before = name.strip_suffix(local);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}
