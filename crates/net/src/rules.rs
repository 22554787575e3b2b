//! The allow and deny lists of the configuration, and how they apply to a destination.

use crate::address::embedded_v4;
use crate::destination::Host;
use crate::host_pattern::HostPattern;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

/// The lists `egress.allow` and `egress.deny`. Deny takes precedence, except that `*` in `deny` matches only hosts that
/// `allow` does not name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressRules {
    /// Hosts that are allowed although they are not public or use an unusual port.
    pub allow: Vec<HostPattern>,
    /// Hosts that are always refused.
    pub deny: Vec<HostPattern>,
}

impl EgressRules {
    /// Returns a hash of the rules, to detect pages that were fetched under other rules. The hash may differ between
    /// versions of lango.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for list in [&self.allow, &self.deny] {
            list.len().hash(&mut hasher);
            for entry in list {
                entry.to_string().hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Returns the entry of `deny` that matches a host.
    pub(crate) fn denying(&self, host: &Host, port: u16) -> Option<&HostPattern> {
        let is_named = self.allow.iter().any(|entry| entry.matches(host, port));
        let mut entries = self.deny.iter();
        let by_host =
            entries.find(|entry| entry.matches(host, port) && !(entry.is_any() && is_named));
        match host {
            Host::Address(address) => by_host.or_else(|| self.denying_address(*address, port)),
            Host::Name(_) => by_host,
        }
    }

    /// Returns the entry of `deny` that matches an address or its embedded IPv4 address.
    pub(crate) fn denying_address(&self, address: IpAddr, port: u16) -> Option<&HostPattern> {
        let embedded = embedded_v4(address).map(IpAddr::V4);
        self.deny.iter().find(|entry| {
            entry.matches_address(address, port)
                || embedded.is_some_and(|embedded| entry.matches_address(embedded, port))
        })
    }

    /// Returns whether `allow` names this host. A name must match a name, and an address must match an address or
    /// network. `*` names no host.
    pub(crate) fn names(&self, host: &Host, port: u16) -> bool {
        let mut entries = self.allow.iter();
        entries.any(|entry| !entry.is_any() && entry.matches(host, port))
    }

    /// Returns whether `allow` has an entry for the host with exactly this port.
    pub(crate) fn names_port(&self, host: &Host, port: u16) -> bool {
        let mut entries = self.allow.iter();
        entries.any(|entry| entry.port() == Some(port) && entry.matches(host, port))
    }

    /// Returns whether `allow` names an address.
    pub(crate) fn names_address(&self, address: IpAddr, port: u16) -> bool {
        let mut entries = self.allow.iter();
        entries.any(|entry| entry.matches_address(address, port))
    }
}
