//! Classifies IP addresses by a table of networks; the first row that contains the address decides.
//!
//! If an IPv6 address embeds an IPv4 address (mapped, NAT64, 6to4, Teredo, ISATAP) that is refused, it has the class of
//! that IPv4 address, because packets may be delivered there. All IPv6 addresses outside of the global unicast range
//! are refused.

mod networks;

pub(crate) use networks::contains;

use networks::{Embedding, Row, row_of};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// The class of an address. Every class but [`Public`](Self::Public) is refused unless the rules name the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressClass {
    Public,
    /// `0.0.0.0/8` and `::`, which most systems treat as this machine.
    Unspecified,
    Loopback,
    /// The private networks of IPv4.
    Private,
    /// Behind a provider's address translation (`100.64.0.0/10`).
    SharedCarrier,
    /// The private networks of IPv6 (`fc00::/7`).
    UniqueLocal,
    /// The former private networks of IPv6 (`fec0::/10`).
    SiteLocal,
    /// Reachable only on the same network link.
    LinkLocal,
    /// A cloud service that hands out credentials of the machine.
    Metadata,
    Multicast,
    Broadcast,
    /// Reserved for examples in documentation.
    Documentation,
    /// Reserved for benchmarks; some local proxies use it too.
    Benchmark,
    /// A mechanism for the transition from IPv4 that public hosts do not use.
    Transition,
    /// Not assigned for ordinary use.
    Reserved,
    /// An address of this machine's own network interfaces.
    OwnMachine,
}

/// The permission needed to reach an address of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// No permission is needed.
    Free,
    /// `egress.allow` must name the host or the address.
    Named,
    /// `egress.allow` must name the address, and also the host name if there is one.
    ByAddress,
    /// Always refused.
    Never,
}

impl AddressClass {
    /// Returns the permission needed to reach an address of this class.
    pub fn permission(self) -> Permission {
        match self {
            Self::Public => Permission::Free,
            Self::Loopback
            | Self::Private
            | Self::SharedCarrier
            | Self::UniqueLocal
            | Self::SiteLocal
            | Self::Benchmark
            | Self::OwnMachine => Permission::Named,
            Self::LinkLocal
            | Self::Metadata
            | Self::Documentation
            | Self::Transition
            | Self::Reserved => Permission::ByAddress,
            Self::Unspecified | Self::Multicast | Self::Broadcast => Permission::Never,
        }
    }

    /// Returns the name used in messages and test data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::SharedCarrier => "carrier-shared",
            Self::UniqueLocal => "unique-local",
            Self::SiteLocal => "site-local",
            Self::LinkLocal => "link-local",
            Self::Metadata => "metadata",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Documentation => "documentation",
            Self::Benchmark => "benchmark",
            Self::Transition => "transition",
            Self::Reserved => "reserved",
            Self::OwnMachine => "own-machine",
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Classifies an address.
pub fn classify(address: IpAddr) -> AddressClass {
    if let Some(class) = isatap(address).map(|carried| classify(carried.into()))
        && class != AddressClass::Public
    {
        return class;
    }
    match (row_of(address), address) {
        (Row::Is(class), _) => class,
        (Row::Carries(embedding, otherwise), IpAddr::V6(address)) => {
            match classify(embedding.extract(address).into()) {
                AddressClass::Public => otherwise,
                class => class,
            }
        }
        (Row::Carries(_, otherwise), IpAddr::V4(_)) => otherwise,
    }
}

/// Returns the embedded IPv4 address that a packet to this address may be delivered to.
pub(crate) fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    isatap(address).or_else(|| match (row_of(address), address) {
        (Row::Carries(embedding, _), IpAddr::V6(address)) => Some(embedding.extract(address)),
        _ => None,
    })
}

/// Returns the IPv4 address in an ISATAP address, which may have any prefix.
fn isatap(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let segments = address.segments();
    let is_isatap = matches!(segments[4], 0 | 0x200) && segments[5] == 0x5efe;
    is_isatap.then(|| Embedding::Last.extract(address))
}
