//! A name server on loopback whose answers are encoded in the names: `a-10-0-0-1.x.example` has that address,
//! `m-…-and-….x.example` has both, and `r-…-then-….x.example` has the first at the first lookup and the second from
//! then on. All other names below `example` have a public address.

use crate::test_network::PUBLIC;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;
use std::thread;

const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;

/// The suffix of names whose lookup is a leak.
const LEAK: &str = ".leak.example";

/// Starts the name server. Lookups below [`LEAK`] are appended to the log.
pub(crate) fn serve(log: &Path) {
    let mut log = OpenOptions::new().append(true).open(log).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
    thread::spawn(move || {
        let mut lookups: HashMap<String, u32> = HashMap::new();
        let mut packet = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            if let Some(answer) = answer(&packet[..length], &mut lookups, &mut log) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
}

/// Returns a name with this address.
pub(crate) fn with_address(address: &str) -> String {
    format!("a-{}.x.example", label(address))
}

/// Returns a name with both addresses.
pub(crate) fn with_addresses(first: &str, second: &str) -> String {
    format!("m-{}-and-{}.x.example", label(first), label(second))
}

/// Placeholder in a URL for a number that differs each time the URL is opened.
pub(crate) const FRESH: &str = "{fresh}";

/// Returns a name whose address changes after the first lookup.
pub(crate) fn changing(first: &str, second: &str) -> String {
    format!("r-{}-then-{}.{FRESH}.example", label(first), label(second))
}

fn label(address: &str) -> String {
    match address.parse::<IpAddr>().unwrap() {
        IpAddr::V4(address) => address.to_string().replace('.', "-"),
        IpAddr::V6(address) => format!("v{:032x}", address.to_bits()),
    }
}

fn address(label: &str) -> Option<IpAddr> {
    match label.strip_prefix('v') {
        Some(hex) => Some(IpAddr::V6(u128::from_str_radix(hex, 16).ok()?.into())),
        None => Some(IpAddr::V4(label.replace('-', ".").parse().ok()?)),
    }
}

fn addresses(name: &str, kind: u16, lookups: &mut HashMap<String, u32>) -> Option<Vec<IpAddr>> {
    let label = name.split('.').next()?;
    if let Some(one) = label.strip_prefix("a-") {
        return Some(vec![address(one)?]);
    }
    if let Some((first, second)) = label
        .strip_prefix("m-")
        .and_then(|both| both.split_once("-and-"))
    {
        return Some(vec![address(first)?, address(second)?]);
    }
    if let Some((first, second)) = label
        .strip_prefix("r-")
        .and_then(|both| both.split_once("-then-"))
    {
        // A lookup queries both IPv4 and IPv6 addresses, so they are counted separately.
        let count = lookups.entry(format!("{name} {kind}")).or_default();
        *count += 1;
        return Some(vec![address(if *count == 1 { first } else { second })?]);
    }
    let is_known = [
        ".example",
        ".local",
        ".internal",
        ".test",
        ".corp",
        ".lan",
        ".svc",
        ".onion",
        ".home.arpa",
    ]
    .iter()
    .any(|end| name.ends_with(end));
    is_known.then(|| vec![PUBLIC.parse::<Ipv4Addr>().unwrap().into()])
}

fn answer(
    query: &[u8],
    lookups: &mut HashMap<String, u32>,
    log: &mut impl Write,
) -> Option<Vec<u8>> {
    let mut at = 12;
    let mut labels = Vec::new();
    while *query.get(at)? != 0 {
        let length = usize::from(query[at]);
        labels.push(String::from_utf8_lossy(query.get(at + 1..at + 1 + length)?).to_lowercase());
        at += 1 + length;
    }
    let question = query.get(12..at + 5)?;
    let kind = u16::from_be_bytes([query[at + 1], query[at + 2]]);
    let name = labels.join(".");
    if name.ends_with(LEAK) {
        log.write_all(b"lookup [::]:53\n").unwrap();
    }
    let found = addresses(&name, kind, lookups);
    let records: Vec<Vec<u8>> = found
        .iter()
        .flatten()
        .filter_map(|address| match (address, kind) {
            (IpAddr::V4(address), TYPE_A) => Some(address.octets().to_vec()),
            (IpAddr::V6(address), TYPE_AAAA) => Some(address.octets().to_vec()),
            _ => None,
        })
        .collect();
    let mut reply = query[..2].to_vec();
    let code: u8 = if found.is_some() { 0 } else { 3 };
    reply.extend([
        0x81,
        0x80 | code,
        0,
        1,
        0,
        u8::try_from(records.len()).ok()?,
        0,
        0,
        0,
        0,
    ]);
    reply.extend(question);
    for data in records {
        reply.extend([0xc0, 12]);
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1, 0, 0, 0, 0]);
        reply.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
        reply.extend(data);
    }
    Some(reply)
}
