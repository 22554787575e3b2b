//! The table of networks: the special-purpose registries of IANA, and the addresses of metadata services.

use super::AddressClass::{self, *};
use Embedding::*;
use Row::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// The position of an IPv4 address inside an IPv6 address.
#[derive(Clone, Copy)]
pub(super) enum Embedding {
    /// In the last 32 bits.
    Last,
    /// In the last 32 bits, each bit inverted.
    LastInverted,
    /// In bits 16 to 47.
    Second,
}

impl Embedding {
    pub(super) fn extract(self, address: Ipv6Addr) -> Ipv4Addr {
        let bits = address.to_bits();
        Ipv4Addr::from_bits(match self {
            Last => bits as u32,
            LastInverted => !(bits as u32),
            Second => (bits >> 80) as u32,
        })
    }
}

/// The classification in a row of the table.
#[derive(Clone, Copy)]
pub(super) enum Row {
    Is(AddressClass),
    /// The class of the embedded IPv4 address, or this class if the embedded address is public.
    Carries(Embedding, AddressClass),
}

/// Networks of IPv4; all other addresses are public.
const V4: &[(&str, Row)] = &[
    ("169.254.169.254/32", Is(Metadata)),
    ("169.254.170.2/32", Is(Metadata)),
    ("100.100.100.200/32", Is(Metadata)),
    ("168.63.129.16/32", Is(Metadata)),
    ("192.0.0.192/32", Is(Metadata)),
    ("255.255.255.255/32", Is(Broadcast)),
    ("0.0.0.0/8", Is(Unspecified)),
    ("10.0.0.0/8", Is(Private)),
    ("100.64.0.0/10", Is(SharedCarrier)),
    ("127.0.0.0/8", Is(Loopback)),
    ("169.254.0.0/16", Is(LinkLocal)),
    ("172.16.0.0/12", Is(Private)),
    ("192.0.0.0/24", Is(Reserved)),
    ("192.0.2.0/24", Is(Documentation)),
    ("192.31.196.0/24", Is(Reserved)),
    ("192.52.193.0/24", Is(Reserved)),
    ("192.88.99.0/24", Is(Transition)),
    ("192.168.0.0/16", Is(Private)),
    ("192.175.48.0/24", Is(Reserved)),
    ("198.18.0.0/15", Is(Benchmark)),
    ("198.51.100.0/24", Is(Documentation)),
    ("203.0.113.0/24", Is(Documentation)),
    ("224.0.0.0/4", Is(Multicast)),
    ("240.0.0.0/4", Is(Reserved)),
];

/// Networks of IPv6; all other addresses are reserved.
const V6: &[(&str, Row)] = &[
    ("::/128", Is(Unspecified)),
    ("::1/128", Is(Loopback)),
    ("::ffff:0.0.0.0/96", Carries(Last, Public)),
    ("::/96", Carries(Last, Transition)),
    // Networks with only IPv6 reach public IPv4 hosts through NAT64.
    ("64:ff9b::/96", Carries(Last, Public)),
    // Each network may use this prefix in its own way.
    ("64:ff9b:1::/48", Carries(Last, Transition)),
    ("fd00:ec2::254/128", Is(Metadata)),
    ("fd20:ce::254/128", Is(Metadata)),
    ("fd00:c1::a9fe:a9fe/128", Is(Metadata)),
    ("100::/64", Is(Reserved)),
    ("2001::/32", Carries(LastInverted, Transition)),
    ("2001:2::/48", Is(Benchmark)),
    ("2001::/23", Is(Reserved)),
    ("2001:db8::/32", Is(Documentation)),
    ("2002::/16", Carries(Second, Transition)),
    ("2620:4f:8000::/48", Is(Reserved)),
    ("3fff::/20", Is(Documentation)),
    ("2000::/3", Is(Public)),
    ("fc00::/7", Is(UniqueLocal)),
    ("fe80::/10", Is(LinkLocal)),
    ("fec0::/10", Is(SiteLocal)),
    ("ff00::/8", Is(Multicast)),
];

struct Network {
    base: IpAddr,
    bits: u32,
    row: Row,
}

static NETWORKS: LazyLock<Vec<Network>> = LazyLock::new(|| {
    let parse = |(text, row): &(&str, Row)| {
        let (base, bits) = text.split_once('/').expect("a prefix length");
        Network {
            base: base.parse().expect("an address"),
            bits: bits.parse().expect("a number of bits"),
            row: *row,
        }
    };
    V4.iter().chain(V6).map(parse).collect()
});

/// Returns the first row whose network contains the address.
pub(super) fn row_of(address: IpAddr) -> Row {
    let mut networks = NETWORKS.iter();
    let network = networks.find(|network| contains(network.base, network.bits, address));
    network.map_or_else(
        || match address {
            IpAddr::V4(_) => Is(Public),
            IpAddr::V6(_) => Is(Reserved),
        },
        |network| network.row,
    )
}

/// Returns whether a network contains an address.
pub(crate) fn contains(base: IpAddr, bits: u32, address: IpAddr) -> bool {
    let (differing, width) = match (base, address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => {
            (u128::from(base.to_bits() ^ address.to_bits()), 32)
        }
        (IpAddr::V6(base), IpAddr::V6(address)) => (base.to_bits() ^ address.to_bits(), 128),
        _ => return false,
    };
    bits == 0 || differing.checked_shr(width - bits.min(width)).unwrap_or(0) == 0
}
