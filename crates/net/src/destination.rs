//! A host and port that passed every check that needs no DNS lookup.

use lango_secrets::Origin;
use std::fmt;
use std::net::IpAddr;
use url::Url;

/// A host as it will be contacted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name in lower case and ASCII, without a final dot.
    Name(String),
    /// A literal address in any spelling.
    Address(IpAddr),
}

/// A destination that passed [`Egress::check`](crate::Egress::check). Only the guard creates one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    host: Host,
    port: u16,
    is_https: bool,
}

impl Destination {
    pub(crate) fn new(host: Host, port: u16, is_https: bool) -> Self {
        Self {
            host,
            port,
            is_https,
        }
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the port, or the default port of the scheme if the URL has none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the connection uses TLS.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Returns the same host and port without TLS.
    pub(crate) fn without_tls(&self) -> Self {
        Self {
            is_https: false,
            ..self.clone()
        }
    }

    /// Returns the origin that secrets are bound to.
    pub(crate) fn origin(&self) -> Option<Origin> {
        let scheme = if self.is_https { "https" } else { "http" };
        Origin::of(&Url::parse(&format!("{scheme}://{self}/")).ok()?)
    }

    /// Returns the host in the form that grants and rules use: with the port only if it is not the default of the
    /// scheme.
    pub fn site(&self) -> String {
        let default = if self.is_https { 443 } else { 80 };
        if self.port == default {
            self.host.to_string()
        } else {
            self.to_string()
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(formatter),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

/// The maximum length of a DNS name.
const MAX_NAME: usize = 253;

/// Returns the host of a parsed URL, or `None` if it has no host that DNS could resolve.
pub(crate) fn host_of(url: &Url) -> Option<Host> {
    match url.host()? {
        url::Host::Ipv4(address) => Some(Host::Address(address.into())),
        url::Host::Ipv6(address) => Some(Host::Address(IpAddr::V6(address).to_canonical())),
        url::Host::Domain(name) => name_of(name).map(Host::Name),
    }
}

/// Normalizes a name for comparison. Returns `None` if it is not a host name.
pub(crate) fn name_of(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_plain)
    };
    (name.len() <= MAX_NAME && name.split('.').all(is_label)).then(|| name.to_ascii_lowercase())
}
