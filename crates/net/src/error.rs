//! Reasons why the guard refuses a destination, and errors of connections.

use crate::address::{AddressClass, Permission};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// A destination that the guard refused. The message names the destination, the reason, and the configuration key that
/// would allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// Host and port, or the text that is not a URL.
    pub destination: String,
    pub reason: RefusalReason,
    /// How many times the destination was refused, if refusals are collected; otherwise 1.
    pub count: u64,
}

/// Why a destination was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalReason {
    /// The scheme is neither `http` nor `https`.
    Scheme(String),
    /// The URL contains a user name or a password.
    UserInfo,
    /// The URL has no host, or one that is neither a name nor an address.
    BadHost,
    /// The port belongs to another protocol.
    Port(u16),
    /// The name belongs to this machine or the local network.
    LocalName,
    /// The address is not public. The destination is the address, or a name that resolves to it.
    Address {
        address: IpAddr,
        class: AddressClass,
    },
    /// An entry of `egress.deny` matches.
    Denied { entry: String },
    /// The host is not in the program's list of hosts.
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
    OutOfRequests { limit: u64 },
    /// The turn used up its bytes.
    OutOfBytes { limit: u64 },
    /// The request has the placeholder of a secret where the secret may not be sent.
    Placeholder {
        /// The name of the secret.
        name: String,
        /// Where in the request the placeholder was.
        place: String,
        /// Where the secret may be sent.
        allowed: String,
    },
    /// The secret cannot be used now.
    SecretUnavailable {
        /// The name of the secret.
        name: String,
        /// The problem and the next step.
        detail: String,
    },
    /// A `Host` header or a TLS server name differs from the target of the connection.
    OtherHost { name: String },
    /// The request asks to switch to another protocol, on an intercepted connection.
    OtherProtocol,
    /// Stands for all refusals that did not fit in the list.
    More,
}

impl Refusal {
    pub(crate) fn new(destination: impl Into<String>, reason: RefusalReason) -> Self {
        Self {
            destination: destination.into(),
            reason,
            count: 1,
        }
    }

    /// Returns whether the policy refused the destination. False if the lookup failed.
    pub fn is_policy(&self) -> bool {
        !matches!(self.reason, RefusalReason::Unresolved { .. })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let destination = &self.destination;
        match &self.reason {
            RefusalReason::Scheme(scheme) => write!(
                formatter,
                "`{destination}` is refused: only `http` and `https` are allowed, not `{scheme}`"
            )?,
            RefusalReason::UserInfo => write!(
                formatter,
                "`{destination}` is refused: the URL contains a user name or password; leave it out"
            )?,
            RefusalReason::BadHost => write!(
                formatter,
                "`{destination}` is refused: it has no valid host name or address"
            )?,
            RefusalReason::Port(port) => write!(
                formatter,
                "`{destination}` is refused: port {port} is not used for HTTP; add `{destination}` to `egress.allow` to permit it"
            )?,
            RefusalReason::LocalName => write!(
                formatter,
                "`{destination}` is refused: the name belongs to this machine or the local network; add `{destination}` to `egress.allow` to permit it"
            )?,
            RefusalReason::Address { address, class } => {
                self.fmt_address(formatter, *address, *class)?
            }
            RefusalReason::Denied { entry } => write!(
                formatter,
                "`{destination}` is refused by the entry `{entry}` in `egress.deny`"
            )?,
            RefusalReason::NotListed { key } => write!(
                formatter,
                "`{destination}` is refused: it is not listed; add `{destination}` to `{key}` to permit it"
            )?,
            RefusalReason::Unresolved { problem } => {
                write!(formatter, "`{destination}` cannot be resolved: {problem}")?;
            }
            RefusalReason::OutOfRequests { limit } => write!(
                formatter,
                "`{destination}` is refused: this turn has made {limit} requests, the maximum of `egress.maxRequests`"
            )?,
            RefusalReason::OutOfBytes { limit } => write!(
                formatter,
                "`{destination}` is refused: this turn has transferred {limit} bytes, the maximum of `egress.maxBytes`"
            )?,
            RefusalReason::Placeholder {
                name,
                place,
                allowed,
            } => write!(
                formatter,
                "a request to `{destination}` is refused: the placeholder of the secret `{name}` was in {place}; it may only be in {allowed}"
            )?,
            RefusalReason::SecretUnavailable { name, detail }
                if detail.contains(&format!("`{name}`")) =>
            {
                write!(
                    formatter,
                    "a request to `{destination}` is refused: {detail}"
                )?;
            }
            RefusalReason::SecretUnavailable { name, detail } => write!(
                formatter,
                "a request to `{destination}` is refused: the secret `{name}` cannot be used: {detail}"
            )?,
            RefusalReason::OtherHost { name } => write!(
                formatter,
                "a request to `{destination}` is refused: it names another host, `{name}`"
            )?,
            RefusalReason::OtherProtocol => write!(
                formatter,
                "a request to `{destination}` is refused: commands with secrets can only use HTTP, without upgrades such as WebSocket"
            )?,
            RefusalReason::More => {
                write!(formatter, "more destinations were refused ({destination})")?
            }
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
            Permission::Never => formatter.write_str(", and no setting can permit it"),
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
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("cannot connect to `{destination}`")]
    Unreachable {
        /// Host and port.
        destination: String,
        /// The error of the last attempt.
        #[source]
        source: io::Error,
    },
    #[error("`{destination}` did not {action} within {seconds} s", seconds = .after.as_secs_f32())]
    TimedOut {
        /// Host and port.
        destination: String,
        /// What the destination did not do in time.
        action: &'static str,
        /// The time limit.
        after: Duration,
    },
    /// The TLS handshake failed, or the certificate is not valid.
    #[error("the TLS connection to `{destination}` cannot be verified")]
    Tls {
        /// Host and port.
        destination: String,
        #[source]
        source: io::Error,
    },
    /// The server violated the HTTP protocol.
    #[error("`{destination}` sent a response that cannot be read")]
    Http {
        /// Host and port.
        destination: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("`{url}` leads through more than {limit} redirects")]
    TooManyRedirects {
        /// The first URL.
        url: String,
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
