//! What kind of address an IP address is, as a table of networks; the first row that contains the address decides.
//!
//! Addresses that carry an IPv4 address (mapped, NAT64, 6to4, Teredo, ISATAP) count as the one they carry if that one is
//! refused: a packet to them may end there. IPv6 outside of the global unicast range is refused as a whole.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A kind of address. Everything but [`Public`](Self::Public) is refused unless the rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressClass {
    /// On the public internet.
    Public,
    /// `0.0.0.0/8` and `::`, which mean this machine to most systems.
    Unspecified,
    /// This machine.
    Loopback,
    /// The private networks of IPv4.
    Private,
    /// Behind a provider's address translation (`100.64.0.0/10`).
    SharedCarrier,
    /// The private networks of IPv6 (`fc00::/7`).
    UniqueLocal,
    /// The former private networks of IPv6 (`fec0::/10`).
    SiteLocal,
    /// Reachable on one link only.
    LinkLocal,
    /// A cloud's service that gives out credentials of the machine.
    Metadata,
    /// Many receivers.
    Multicast,
    /// All receivers of a network.
    Broadcast,
    /// For examples in documents.
    Documentation,
    /// For measurements in laboratories; some local proxies use it too.
    Benchmark,
    /// A form of transition from IPv4 that public hosts do not use.
    Transition,
    /// Not assigned for ordinary use.
    Reserved,
    /// An address of this machine's own network interfaces.
    OwnMachine,
}

/// What it takes to reach an address of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Nothing.
    Free,
    /// An entry in `egress.allow` with the host name or the address.
    Named,
    /// An entry in `egress.allow` with the address; a name that resolves to it needs an entry of its own as well.
    ByAddress,
    /// Nothing permits it.
    Never,
}

impl AddressClass {
    /// Says what it takes to reach such an address.
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

    /// The word for it in test data and messages.
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

/// Networks of IPv4 that are not public.
const V4: [([u8; 4], u32, AddressClass); 24] = [
    ([169, 254, 169, 254], 32, AddressClass::Metadata),
    ([169, 254, 170, 2], 32, AddressClass::Metadata),
    ([100, 100, 100, 200], 32, AddressClass::Metadata),
    ([168, 63, 129, 16], 32, AddressClass::Metadata),
    ([192, 0, 0, 192], 32, AddressClass::Metadata),
    ([255, 255, 255, 255], 32, AddressClass::Broadcast),
    ([0, 0, 0, 0], 8, AddressClass::Unspecified),
    ([10, 0, 0, 0], 8, AddressClass::Private),
    ([100, 64, 0, 0], 10, AddressClass::SharedCarrier),
    ([127, 0, 0, 0], 8, AddressClass::Loopback),
    ([169, 254, 0, 0], 16, AddressClass::LinkLocal),
    ([172, 16, 0, 0], 12, AddressClass::Private),
    ([192, 0, 0, 0], 24, AddressClass::Reserved),
    ([192, 0, 2, 0], 24, AddressClass::Documentation),
    ([192, 31, 196, 0], 24, AddressClass::Reserved),
    ([192, 52, 193, 0], 24, AddressClass::Reserved),
    ([192, 88, 99, 0], 24, AddressClass::Transition),
    ([192, 168, 0, 0], 16, AddressClass::Private),
    ([192, 175, 48, 0], 24, AddressClass::Reserved),
    ([198, 18, 0, 0], 15, AddressClass::Benchmark),
    ([198, 51, 100, 0], 24, AddressClass::Documentation),
    ([203, 0, 113, 0], 24, AddressClass::Documentation),
    ([224, 0, 0, 0], 4, AddressClass::Multicast),
    ([240, 0, 0, 0], 4, AddressClass::Reserved),
];

/// Where an IPv6 address carries an IPv4 address.
#[derive(Clone, Copy)]
enum Embedding {
    /// In the last 32 bits.
    Last,
    /// In the last 32 bits, each bit inverted.
    LastInverted,
    /// In bits 16 to 47.
    Second,
}

/// What a row of the IPv6 table says.
#[derive(Clone, Copy)]
enum Row {
    Is(AddressClass),
    /// The class of the embedded IPv4 address, or this one if that is public.
    Carries(Embedding, AddressClass),
}

/// Networks of IPv6.
const V6: [([u16; 8], u32, Row); 23] = [
    ([0; 8], 128, Row::Is(AddressClass::Unspecified)),
    (
        [0, 0, 0, 0, 0, 0, 0, 1],
        128,
        Row::Is(AddressClass::Loopback),
    ),
    (
        [0, 0, 0, 0, 0, 0xffff, 0, 0],
        96,
        Row::Carries(Embedding::Last, AddressClass::Public),
    ),
    (
        [0; 8],
        96,
        Row::Carries(Embedding::Last, AddressClass::Transition),
    ),
    // A public host seen through NAT64 is how a network with IPv6 alone reaches IPv4.
    (
        [0x64, 0xff9b, 0, 0, 0, 0, 0, 0],
        96,
        Row::Carries(Embedding::Last, AddressClass::Public),
    ),
    // Each network chooses what this one means.
    (
        [0x64, 0xff9b, 1, 0, 0, 0, 0, 0],
        48,
        Row::Carries(Embedding::Last, AddressClass::Transition),
    ),
    (
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
        128,
        Row::Is(AddressClass::Metadata),
    ),
    (
        [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254],
        128,
        Row::Is(AddressClass::Metadata),
    ),
    (
        [0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe],
        128,
        Row::Is(AddressClass::Metadata),
    ),
    (
        [0x100, 0, 0, 0, 0, 0, 0, 0],
        64,
        Row::Is(AddressClass::Reserved),
    ),
    (
        [0x2001, 0, 0, 0, 0, 0, 0, 0],
        32,
        Row::Carries(Embedding::LastInverted, AddressClass::Transition),
    ),
    (
        [0x2001, 2, 0, 0, 0, 0, 0, 0],
        48,
        Row::Is(AddressClass::Benchmark),
    ),
    (
        [0x2001, 0, 0, 0, 0, 0, 0, 0],
        23,
        Row::Is(AddressClass::Reserved),
    ),
    (
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0],
        32,
        Row::Is(AddressClass::Documentation),
    ),
    (
        [0x2002, 0, 0, 0, 0, 0, 0, 0],
        16,
        Row::Carries(Embedding::Second, AddressClass::Transition),
    ),
    (
        [0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0],
        48,
        Row::Is(AddressClass::Reserved),
    ),
    (
        [0x3fff, 0, 0, 0, 0, 0, 0, 0],
        20,
        Row::Is(AddressClass::Documentation),
    ),
    (
        [0x2000, 0, 0, 0, 0, 0, 0, 0],
        3,
        Row::Is(AddressClass::Public),
    ),
    (
        [0xfc00, 0, 0, 0, 0, 0, 0, 0],
        7,
        Row::Is(AddressClass::UniqueLocal),
    ),
    (
        [0xfe80, 0, 0, 0, 0, 0, 0, 0],
        10,
        Row::Is(AddressClass::LinkLocal),
    ),
    (
        [0xfec0, 0, 0, 0, 0, 0, 0, 0],
        10,
        Row::Is(AddressClass::SiteLocal),
    ),
    (
        [0xff00, 0, 0, 0, 0, 0, 0, 0],
        8,
        Row::Is(AddressClass::Multicast),
    ),
    ([0; 8], 0, Row::Is(AddressClass::Reserved)),
];

/// Classifies an address.
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    let row = V4
        .iter()
        .find(|(base, bits, _)| is_in_v4(address, Ipv4Addr::from(*base), *bits));
    row.map_or(AddressClass::Public, |(_, _, class)| *class)
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    if let Some(carried) = isatap(address).map(classify_v4)
        && carried != AddressClass::Public
    {
        return carried;
    }
    let row = V6
        .iter()
        .find(|(base, bits, _)| is_in_v6(address, Ipv6Addr::from(*base), *bits));
    match row {
        // The last row contains every address.
        None => AddressClass::Reserved,
        Some((_, _, Row::Is(class))) => *class,
        Some((_, _, Row::Carries(embedding, otherwise))) => {
            match classify_v4(carried(address, *embedding)) {
                AddressClass::Public => *otherwise,
                class => class,
            }
        }
    }
}

fn carried(address: Ipv6Addr, embedding: Embedding) -> Ipv4Addr {
    let bits = address.to_bits();
    Ipv4Addr::from_bits(match embedding {
        Embedding::Last => bits as u32,
        Embedding::LastInverted => !(bits as u32),
        Embedding::Second => (bits >> 80) as u32,
    })
}

/// The IPv4 address that a packet to this address may end at.
pub(crate) fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    isatap(address).or_else(|| {
        let row = V6
            .iter()
            .find(|(base, bits, _)| is_in_v6(address, Ipv6Addr::from(*base), *bits));
        match row {
            Some((_, _, Row::Carries(embedding, _))) => Some(carried(address, *embedding)),
            _ => None,
        }
    })
}

/// The IPv4 address in an ISATAP address, which may have any prefix.
fn isatap(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let is_isatap = matches!(segments[4], 0 | 0x200) && segments[5] == 0x5efe;
    is_isatap.then(|| carried(address, Embedding::Last))
}

/// Whether a network contains an address.
pub(crate) fn contains(base: IpAddr, bits: u32, address: IpAddr) -> bool {
    match (base, address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => is_in_v4(address, base, bits),
        (IpAddr::V6(base), IpAddr::V6(address)) => is_in_v6(address, base, bits),
        _ => false,
    }
}

fn is_in_v4(address: Ipv4Addr, base: Ipv4Addr, bits: u32) -> bool {
    let differing = address.to_bits() ^ base.to_bits();
    bits == 0 || differing.checked_shr(32 - bits.min(32)).unwrap_or(0) == 0
}

fn is_in_v6(address: Ipv6Addr, base: Ipv6Addr, bits: u32) -> bool {
    let differing = address.to_bits() ^ base.to_bits();
    bits == 0 || differing.checked_shr(128 - bits.min(128)).unwrap_or(0) == 0
}
