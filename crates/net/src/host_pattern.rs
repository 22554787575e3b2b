//! The entries of host lists: a name, all subdomains of a name, an address or a network. Most can have a port.

use crate::address::contains;
use crate::destination::{Host, host_of, name_of};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use url::Url;

/// An entry such as `example.com`, `*.example.com`, `host:8080`, `10.0.0.5:8080`, `[::1]:80`, `10.0.0.0/8` or `*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPattern {
    part: HostPart,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum HostPart {
    Any,
    Name(String),
    /// All subdomains of this name.
    Below(String),
    Network {
        base: IpAddr,
        bits: u32,
    },
}

/// The reason why a text is not a valid entry of a host list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{entry}` is not a host: {problem}; write `example.com`, `*.example.com`, `host:8080`, `10.0.0.5`, `[::1]:80` or `10.0.0.0/8`"
)]
pub struct HostPatternError {
    pub entry: String,
    pub problem: &'static str,
}

impl HostPattern {
    /// Returns whether the entry is `*`, without a port.
    pub fn is_any(&self) -> bool {
        self.part == HostPart::Any && self.port.is_none()
    }

    /// Returns the port if the entry is limited to one.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns whether the entry matches the host of a URL. Networks match only literal addresses.
    pub fn matches(&self, host: &Host, port: u16) -> bool {
        match (&self.part, host) {
            (HostPart::Any, _) => self.has_port(port),
            (HostPart::Name(own), Host::Name(name)) => own == name && self.has_port(port),
            (HostPart::Below(own), Host::Name(name)) => {
                let before = name.strip_suffix(own.as_str());
                before.is_some_and(|before| before.len() > 1 && before.ends_with('.'))
                    && self.has_port(port)
            }
            (HostPart::Network { .. }, Host::Address(address)) => {
                self.matches_address(*address, port)
            }
            _ => false,
        }
    }

    /// Returns whether the entry matches a host given as text, as in a URL, with IPv6 addresses in brackets.
    pub fn covers(&self, host: &str, port: u16) -> bool {
        let url = Url::parse(&format!("http://{host}/"));
        let host = url.ok().and_then(|url| host_of(&url));
        host.is_some_and(|host| self.matches(&host, port))
    }

    /// Returns whether the entry is an address or a network that contains this address.
    pub fn matches_address(&self, address: IpAddr, port: u16) -> bool {
        match self.part {
            HostPart::Network { base, bits } => {
                contains(base, bits, address.to_canonical()) && self.has_port(port)
            }
            _ => false,
        }
    }

    fn has_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.trim()).map_err(|problem| HostPatternError {
            entry: text.to_owned(),
            problem,
        })
    }
}

fn parse(text: &str) -> Result<HostPattern, &'static str> {
    if text.contains("://") {
        return Err("leave out the scheme");
    }
    if text.contains('@') {
        return Err("leave out the user");
    }
    if let Some((base, bits)) = text.split_once('/') {
        return network(base, bits);
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(single(address.into(), None));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(number(port)?)),
        _ => (text, None),
    };
    if host == "*" {
        return Ok(HostPattern {
            part: HostPart::Any,
            port,
        });
    }
    if let Some(below) = host.strip_prefix("*.") {
        let part = match parse_host(below)? {
            Host::Name(name) => HostPart::Below(name),
            Host::Address(_) => return Err("`*.` must be followed by a name"),
        };
        return Ok(HostPattern { part, port });
    }
    Ok(match parse_host(host)? {
        Host::Name(name) => HostPattern {
            part: HostPart::Name(name),
            port,
        },
        Host::Address(address) => single(address, port),
    })
}

fn parse_host(text: &str) -> Result<Host, &'static str> {
    match url::Host::parse(text) {
        Err(_) => Err("it is neither a name nor an address"),
        // In a URL, `7` and `0x7f.1` are addresses; in a list they are probably mistakes.
        Ok(url::Host::Ipv4(address)) if address.to_string() != text => {
            Err("an IPv4 address has four decimal numbers")
        }
        Ok(url::Host::Ipv4(address)) => Ok(Host::Address(address.into())),
        Ok(url::Host::Ipv6(address)) => Ok(Host::Address(IpAddr::V6(address).to_canonical())),
        Ok(url::Host::Domain(name)) => name_of(&name)
            .map(Host::Name)
            .ok_or("a name has letters, digits, `-`, `_` and single dots"),
    }
}

fn single(address: IpAddr, port: Option<u16>) -> HostPattern {
    let base = address.to_canonical();
    HostPattern {
        part: HostPart::Network {
            base,
            bits: width(base),
        },
        port,
    }
}

fn network(base: &str, bits: &str) -> Result<HostPattern, &'static str> {
    let base = base.trim_start_matches('[').trim_end_matches(']');
    let base: IpAddr = base
        .parse()
        .map_err(|_| "a network is an address, `/` and a prefix length, with nothing after it")?;
    let bits = bits.parse().ok().filter(|bits| *bits <= width(base));
    let bits =
        bits.ok_or("`/` must be followed by the prefix length of a network, without a port")?;
    Ok(HostPattern {
        part: HostPart::Network { base, bits },
        port: None,
    })
}

fn number(port: &str) -> Result<u16, &'static str> {
    let is_plain = port.bytes().all(|byte| byte.is_ascii_digit());
    let number = port.parse().ok().filter(|port| is_plain && *port > 0);
    number.ok_or("`:` must be followed by a port from 1 to 65535; write IPv6 addresses in brackets")
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            HostPart::Any => formatter.write_str("*")?,
            HostPart::Name(name) => formatter.write_str(name)?,
            HostPart::Below(name) => write!(formatter, "*.{name}")?,
            HostPart::Network { base, bits } if *bits == width(*base) => {
                Host::Address(*base).fmt(formatter)?;
            }
            HostPart::Network { base, bits } => write!(formatter, "{base}/{bits}")?,
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}
