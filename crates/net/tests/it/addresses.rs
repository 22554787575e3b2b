//! The classes of addresses: the boundaries of each network, and that all spellings of an address have the same class.

use lango_net::{AddressClass, Permission, Url, classify};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn class(text: &str) -> AddressClass {
    classify(text.parse().unwrap())
}

/// The first and last address of each network that is not public.
const NETWORKS: [(&str, &str, AddressClass); 30] = [
    ("0.0.0.0", "0.255.255.255", AddressClass::Unspecified),
    ("10.0.0.0", "10.255.255.255", AddressClass::Private),
    ("100.64.0.0", "100.127.255.255", AddressClass::SharedCarrier),
    ("127.0.0.0", "127.255.255.255", AddressClass::Loopback),
    ("169.254.0.0", "169.254.255.255", AddressClass::LinkLocal),
    ("172.16.0.0", "172.31.255.255", AddressClass::Private),
    ("192.0.0.0", "192.0.0.255", AddressClass::Reserved),
    ("192.0.2.0", "192.0.2.255", AddressClass::Documentation),
    ("192.88.99.0", "192.88.99.255", AddressClass::Transition),
    ("192.168.0.0", "192.168.255.255", AddressClass::Private),
    ("198.18.0.0", "198.19.255.255", AddressClass::Benchmark),
    (
        "198.51.100.0",
        "198.51.100.255",
        AddressClass::Documentation,
    ),
    ("203.0.113.0", "203.0.113.255", AddressClass::Documentation),
    ("224.0.0.0", "239.255.255.255", AddressClass::Multicast),
    ("240.0.0.0", "255.255.255.254", AddressClass::Reserved),
    (
        "255.255.255.255",
        "255.255.255.255",
        AddressClass::Broadcast,
    ),
    ("::", "::", AddressClass::Unspecified),
    ("::1", "::1", AddressClass::Loopback),
    (
        "::ffff:10.0.0.0",
        "::ffff:10.255.255.255",
        AddressClass::Private,
    ),
    ("64:ff9b::a00:0", "64:ff9b::aff:ffff", AddressClass::Private),
    (
        "64:ff9b:1::808:808",
        "64:ff9b:1:ffff:ffff:ffff:808:808",
        AddressClass::Transition,
    ),
    ("2001:10::", "2001:1ff:ffff::", AddressClass::Reserved),
    (
        "2001:db8::",
        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        AddressClass::Documentation,
    ),
    ("2002:a00::", "2002:aff:ffff:ffff::", AddressClass::Private),
    ("2002:800::", "2002:8ff::", AddressClass::Transition),
    ("3fff::", "3fff:fff:ffff::", AddressClass::Documentation),
    (
        "fc00::",
        "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        AddressClass::UniqueLocal,
    ),
    (
        "fe80::",
        "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        AddressClass::LinkLocal,
    ),
    (
        "fec0::",
        "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        AddressClass::SiteLocal,
    ),
    (
        "ff00::",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        AddressClass::Multicast,
    ),
];

/// Addresses just outside of those networks.
const NEIGHBOURS: [&str; 24] = [
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "168.63.129.15",
    "2001:200::",
    "2001:db7:ffff::",
    "2001:db9::",
    "2003::",
    "3ffe:ffff::",
];

#[test]
fn each_network_has_its_class_up_to_its_boundaries() {
    for (first, last, expected) in NETWORKS {
        assert_eq!(class(first), expected, "{first}");
        assert_eq!(class(last), expected, "{last}");
    }
    for neighbour in NEIGHBOURS {
        assert_eq!(class(neighbour), AddressClass::Public, "{neighbour}");
    }
}

#[test]
fn metadata_services_have_a_class_of_their_own() {
    for address in [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
    ] {
        assert_eq!(class(address), AddressClass::Metadata, "{address}");
        assert_eq!(class(address).permission(), Permission::ByAddress);
    }
}

#[test]
fn only_public_addresses_are_free_in_each_block_of_ipv4() {
    // Checks one address of each /16. The standard library knows some of the classes too.
    for block in 0..=u16::MAX {
        let address = Ipv4Addr::from_bits(u32::from(block) << 16 | 0x0105);
        let is_free = classify(address.into()).permission() == Permission::Free;
        let is_special = address.is_private()
            || address.is_loopback()
            || address.is_link_local()
            || address.is_multicast()
            || address.is_broadcast()
            || address.octets()[0] == 0
            || address.octets()[0] >= 240
            || address.octets()[0] == 100 && address.octets()[1] & 0xc0 == 64
            || address.octets()[0] == 198 && address.octets()[1] & 0xfe == 18;
        assert_eq!(is_free, !is_special, "{address}");
    }
}

/// Formats a part of an address in one of the spellings that URLs accept.
fn part(value: u32, spelling: u8) -> String {
    match spelling % 5 {
        0 => value.to_string(),
        1 => format!("0{value:o}"),
        2 => format!("{value:#x}"),
        3 => format!("0X{value:X}"),
        _ => format!("000{value:o}"),
    }
}

/// Formats an address in this many parts. The last part has all remaining bits.
fn spelled(address: Ipv4Addr, parts: usize, spellings: [u8; 4]) -> String {
    let octets = address.octets();
    let mut texts: Vec<String> = (0..parts - 1)
        .map(|index| part(octets[index].into(), spellings[index]))
        .collect();
    let remaining = address.to_bits() & (u32::MAX >> (8 * (parts - 1)));
    texts.push(part(remaining, spellings[parts - 1]));
    texts.join(".")
}

fn host(text: &str) -> IpAddr {
    match Url::parse(&format!("http://{text}/"))
        .unwrap()
        .host()
        .unwrap()
    {
        url::Host::Ipv4(address) => address.into(),
        url::Host::Ipv6(address) => address.into(),
        url::Host::Domain(name) => panic!("{text} is the name {name}"),
    }
}

fn any_address() -> impl Strategy<Value = Ipv4Addr> {
    let special = prop::sample::select(vec![
        0x7f00_0001_u32,
        0x0a00_0001,
        0xa9fe_a9fe,
        0xc0a8_0101,
        0,
        0xffff_ffff,
        0x6464_64c8,
    ]);
    prop_oneof![any::<u32>(), special].prop_map(Ipv4Addr::from_bits)
}

proptest! {
    #[test]
    fn every_spelling_of_an_address_has_the_same_class(
        address in any_address(), parts in 1..=4_usize, spellings: [u8; 4], has_dot: bool,
    ) {
        let expected = classify(address.into());
        let dot = if has_dot { "." } else { "" };
        let text = format!("{}{dot}", spelled(address, parts, spellings));
        prop_assert_eq!(classify(host(&text)), expected, "{}", text);
        let wide: String = text.chars().map(|letter| match letter {
            '0'..='9' => char::from_u32(letter as u32 - 0x30 + 0xff10).unwrap(),
            '.' => '\u{3002}',
            other => other,
        }).collect();
        prop_assert_eq!(classify(host(&wide)), expected, "{}", wide);
        prop_assert_eq!(classify(host(&format!("[::ffff:{address}]"))), expected);
    }

    #[test]
    fn an_address_that_embeds_a_refused_one_has_its_class(address in any_address(), prefix: u64) {
        let expected = classify(address.into());
        let bits = u128::from(address.to_bits());
        let carriers = [
            0x0064_ff9b_u128 << 96 | bits,
            0x0064_ff9b_0001_u128 << 80 | bits,
            0x2002_u128 << 112 | bits << 80,
            0x2001_u128 << 112 | u128::from(prefix) << 32 | u128::from(!address.to_bits()),
            u128::from(prefix) << 64 | 0x5efe << 32 | bits,
            u128::from(prefix) << 64 | 0x0200_5efe << 32 | bits,
        ];
        for carrier in carriers.map(Ipv6Addr::from_bits) {
            // Addresses with a random prefix are Teredo only if their second group is zero.
            let is_teredo = carrier.segments()[0] == 0x2001 && carrier.segments()[1] == 0;
            if expected != AddressClass::Public && (carrier.segments()[0] != 0x2001 || is_teredo) {
                prop_assert_eq!(classify(carrier.into()), expected, "{}", carrier);
            }
        }
    }

    #[test]
    fn ipv6_outside_of_global_unicast_is_never_free(bits: u128) {
        let address = Ipv6Addr::from_bits(bits);
        let is_free = classify(address.into()).permission() == Permission::Free;
        let may_be_free = bits >> 125 == 1 || bits >> 32 == 0xffff || bits >> 32 == 0x0064_ff9b_u128 << 64;
        prop_assert!(!is_free || may_be_free, "{}", address);
    }
}
