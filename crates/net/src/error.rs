//! Reasons why the guard refuses a destination, and errors of connections.

use crate::address::{AddressClass, Permission};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// A destination that the guard refused. Its text names the destination, the reason and the configuration key that
/// would allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Host and port, or the text that is not a URL.
    pub destination: String,
    /// The reason.
    pub reason: Reason,
    /// Number of times it was refused, where refusals are collected.
    pub count: u64,
}

/// The reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Neither `http` nor `https`.
    Scheme(String),
    /// The URL carries a user or a password.
    UserInfo,
    /// No host, or one that is neither a name nor an address.
    BadHost,
    /// The port belongs to another protocol.
    Port(u16),
    /// A name of this machine or the local network.
    LocalName,
    /// An address that is not public; the destination is the address, or a name that resolves to it.
    Address {
        /// The address.
        address: IpAddr,
        /// Its class.
        class: AddressClass,
    },
    /// An entry of `egress.deny`.
    Denied {
        /// The entry.
        entry: String,
    },
    /// Not in the list of hosts for this program.
    NotListed {
        /// The configuration key of the list.
        key: String,
    },
    /// The name has no address.
    Unresolved {
        /// The resolver's error.
        problem: String,
    },
    /// The turn used up its requests.
    OutOfRequests {
        /// The limit.
        limit: u64,
    },
    /// The turn used up its bytes.
    OutOfBytes {
        /// The limit.
        limit: u64,
    },
    /// A placeholder of a secret at a place that the secret is not bound to.
    Placeholder {
        /// The name of the secret.
        name: String,
        /// The place of the placeholder.
        place: String,
        /// The places that the secret is bound to.
        allowed: String,
    },
    /// A secret that cannot be used now.
    SecretUnavailable {
        /// The name of the secret.
        name: String,
        /// The problem and the next step.
        detail: String,
    },
    /// A `Host` header or a TLS server name that differs from the target of the connection.
    OtherHost {
        /// The name.
        name: String,
    },
    /// A change to another protocol on an intercepted connection.
    OtherProtocol,
    /// More destinations were refused than the list holds.
    More,
}

impl Refusal {
    pub(crate) fn new(destination: impl Into<String>, reason: Reason) -> Self {
        Self {
            destination: destination.into(),
            reason,
            count: 1,
        }
    }

    /// Returns whether the policy refused the destination, as opposed to a failed lookup.
    pub fn is_policy(&self) -> bool {
        !matches!(self.reason, Reason::Unresolved { .. })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let destination = &self.destination;
        match &self.reason {
            Reason::Scheme(scheme) => write!(
                formatter,
                "`{destination}` is refused: only `http` and `https` are allowed, not `{scheme}`"
            )?,
            Reason::UserInfo => write!(
                formatter,
                "`{destination}` is refused: the address carries a user name or password; leave it out"
            )?,
            Reason::BadHost => write!(
                formatter,
                "`{destination}` is refused: it has no host name or address that can be looked up"
            )?,
            Reason::Port(port) => write!(
                formatter,
                "`{destination}` is refused: port {port} is not used for HTTP; add `{destination}` to `egress.allow` to permit it"
            )?,
            Reason::LocalName => write!(
                formatter,
                "`{destination}` is refused: the name belongs to this machine or the local network; add `{destination}` to `egress.allow` to permit it"
            )?,
            Reason::Address { address, class } => self.fmt_address(formatter, *address, *class)?,
            Reason::Denied { entry } => write!(
                formatter,
                "`{destination}` is refused by the entry `{entry}` in `egress.deny`"
            )?,
            Reason::NotListed { key } => write!(
                formatter,
                "`{destination}` is refused: it is not listed; add `{destination}` to `{key}` to permit it"
            )?,
            Reason::Unresolved { problem } => {
                write!(formatter, "`{destination}` cannot be found: {problem}")?;
            }
            Reason::OutOfRequests { limit } => write!(
                formatter,
                "`{destination}` is refused: this turn made {limit} requests, the most that `egress.maxRequests` allows"
            )?,
            Reason::OutOfBytes { limit } => write!(
                formatter,
                "`{destination}` is refused: this turn moved {limit} bytes, the most that `egress.maxBytes` allows"
            )?,
            Reason::Placeholder {
                name,
                place,
                allowed,
            } => write!(
                formatter,
                "a request to `{destination}` is refused: the placeholder of the secret `{name}` was in {place}; it may only be in {allowed}"
            )?,
            Reason::SecretUnavailable { name, detail } if detail.contains(&format!("`{name}`")) => {
                write!(
                    formatter,
                    "a request to `{destination}` is refused: {detail}"
                )?;
            }
            Reason::SecretUnavailable { name, detail } => write!(
                formatter,
                "a request to `{destination}` is refused: the secret `{name}` cannot be used: {detail}"
            )?,
            Reason::OtherHost { name } => write!(
                formatter,
                "a request to `{destination}` is refused: it names another host, `{name}`"
            )?,
            Reason::OtherProtocol => write!(
                formatter,
                "a request to `{destination}` is refused: commands with secrets can use only HTTP there, without upgrades such as WebSocket"
            )?,
            Reason::More => write!(formatter, "more destinations were refused ({destination})")?,
        }
        if self.count > 1 {
            write!(formatter, " ({} times)", self.count)?;
        }
        Ok(())
    }
}

impl Refusal {
    fn fmt_address(
        &self,
        formatter: &mut fmt::Formatter<'_>,
        address: IpAddr,
        class: AddressClass,
    ) -> fmt::Result {
        let destination = &self.destination;
        let literal = match address {
            IpAddr::V4(address) => format!("{address}:"),
            IpAddr::V6(address) => format!("[{address}]:"),
        };
        let is_literal = destination.starts_with(&literal);
        write!(formatter, "`{destination}` is refused: ")?;
        if is_literal {
            write!(formatter, "the address is not public ({class})")?;
        } else {
            write!(
                formatter,
                "it resolves to {address}, which is not public ({class})"
            )?;
        }
        match class.permission() {
            Permission::Never => formatter.write_str(", and nothing can allow it"),
            Permission::ByAddress if !is_literal => write!(
                formatter,
                "; add both `{destination}` and `{address}` to `egress.allow` to permit it"
            ),
            _ => write!(
                formatter,
                "; add `{destination}` to `egress.allow` to permit it"
            ),
        }
    }
}

/// An error of an outbound connection.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The guard refused it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The connection failed.
    #[error("cannot connect to `{destination}`")]
    Unreachable {
        /// Host and port.
        destination: String,
        /// The system's last error.
        #[source]
        source: io::Error,
    },
    /// A time limit passed.
    #[error("`{destination}` did not {deed} within {seconds} s", seconds = .after.as_secs_f32())]
    TimedOut {
        /// Host and port.
        destination: String,
        /// The missing step.
        deed: &'static str,
        /// The limit.
        after: Duration,
    },
    /// The TLS certificate or handshake is not acceptable.
    #[error("`{destination}` has no TLS that can be verified")]
    Tls {
        /// Host and port.
        destination: String,
        /// The problem.
        #[source]
        source: io::Error,
    },
    /// The server violated the HTTP protocol.
    #[error("`{destination}` sent a response that cannot be read")]
    Http {
        /// Host and port.
        destination: String,
        /// The problem.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// More redirects than allowed.
    #[error("`{url}` leads through more than {limit} redirects")]
    TooManyRedirects {
        /// The first URL.
        url: String,
        /// The limit.
        limit: usize,
    },
}

impl EgressError {
    /// Returns the refusal if the guard's policy caused the error.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) if refusal.is_policy() => Some(refusal),
            _ => None,
        }
    }
}
