//! Errors when reading a card. Each of them makes the remote agent unusable.

use lango_core::AgentName;

/// A remote agent that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("remote agent `{name}` is left out: {reason}")]
pub struct SkippedRemote {
    /// The name in the configuration.
    pub name: AgentName,
    pub reason: CardError,
}

/// Why a card could not be fetched or used. Text from the server is sanitized and shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    #[error("`{url}` is not the URL of a card: {detail}")]
    BadUrl {
        /// The configured URL, without secrets.
        url: String,
        detail: String,
    },
    /// The token or a header cannot be sent.
    #[error("{detail}")]
    BadToken {
        /// The name of the credential, the reason, and the source of its value.
        detail: String,
    },
    /// The token or a header would be sent unencrypted.
    #[error(
        "a token is not sent over http:// to another machine; use https:// for `{url}`, or leave out {source_of_token}"
    )]
    OpenToken {
        url: String,
        source_of_token: String,
    },
    /// There is no connection: it was refused, the host name is unknown, or the certificate is not trusted.
    #[error("`{url}` cannot be reached: {detail}")]
    Unreachable {
        url: String,
        /// The innermost cause.
        detail: String,
    },
    #[error("its card did not arrive within {after_ms} ms")]
    TimedOut { after_ms: u64 },
    /// The card timed out recently, in this process or another one.
    #[error(
        "its card timed out {seconds} s ago; lango does not wait for it now, and tries again in the background"
    )]
    RecentTimeout {
        /// The time since the timeout.
        seconds: u64,
    },
    #[error("the connection broke in the middle of its card: {detail}")]
    Interrupted {
        /// The innermost cause.
        detail: String,
    },
    #[error("`{url}` answered {status}: {next_step}")]
    Unauthorised {
        url: String,
        /// 401 or 403.
        status: u16,
        /// What the user can do about it.
        next_step: String,
    },
    #[error("`{url}` answered {status} instead of a card")]
    Status { url: String, status: u16 },
    #[error("its card moved more than {max} times, last to `{location}`")]
    TooManyRedirects {
        max: usize,
        /// The target of the last redirect.
        location: String,
    },
    #[error("its card moved to `{location}`, which is not followed: {why}")]
    RedirectRefused {
        location: String,
        /// The rule that forbids it.
        why: String,
    },
    #[error("its card is longer than {max_bytes} bytes")]
    TooLarge { max_bytes: usize },
    #[error("`{url}` sent {seen} instead of a card")]
    NotJson {
        url: String,
        /// A description of what the server sent.
        seen: String,
    },
    /// The card is JSON that ends too early.
    #[error("its card ends in the middle, after {bytes} bytes")]
    Truncated { bytes: usize },
    #[error("its card is {seen}, not a JSON object")]
    NotAnObject {
        /// The JSON type that the server sent.
        seen: String,
    },
    /// The card lacks required fields.
    #[error("its card lacks {fields}")]
    Missing { fields: String },
    /// The card is from before version 1.0.
    #[error("its card is for A2A {version}; lango supports 1.0 and later versions 1.x")]
    OldProtocol {
        /// The version in the card.
        version: String,
    },
    /// The card has only versions that lango does not support.
    #[error("it supports A2A {versions}; lango supports 1.0 and later versions 1.x")]
    UnsupportedVersion {
        /// The versions in the card.
        versions: String,
    },
    /// The card has only bindings that lango does not support.
    #[error("it offers {bindings}; lango supports JSONRPC and HTTP+JSON")]
    UnsupportedBinding {
        /// The bindings in the card.
        bindings: String,
    },
    /// The URL of the interface is not allowed.
    #[error("its interface `{url}` is not used: {why}")]
    InterfaceRefused {
        url: String,
        /// The rule that forbids it.
        why: String,
    },
    #[error("it requires the extension `{uri}`, which lango does not support")]
    NeedsExtension { uri: String },
    #[error("the HTTP client could not be created: {detail}")]
    NoClient { detail: String },
}
