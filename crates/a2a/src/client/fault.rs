//! Why a remote agent cannot be used, from its card.

use lango_core::AgentName;

/// A remote agent that is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("remote agent `{name}` is left out: {reason}")]
pub struct SkippedRemote {
    /// The name it is configured under.
    pub name: AgentName,
    /// Why.
    pub reason: CardFault,
}

/// What is wrong with a card, or with getting it. All texts of strangers in it are cleaned and cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CardFault {
    /// The configured URL is none.
    #[error("`{url}` is not the URL of a card: {detail}")]
    BadUrl {
        /// As configured, without anything secret.
        url: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The token or a header cannot be sent.
    #[error("{detail}")]
    BadToken {
        /// Which one, why, and where its value comes from.
        detail: String,
    },
    /// The token or a header would be readable on the way.
    #[error(
        "a token is not sent over http:// to another machine; use https:// for `{url}`, or leave out {source_of_token}"
    )]
    OpenToken {
        /// Where the card would be asked for.
        url: String,
        /// Where the token or header comes from.
        source_of_token: String,
    },
    /// No connection: refused, no such name, no trusted certificate.
    #[error("`{url}` cannot be reached: {detail}")]
    Unreachable {
        /// What was asked.
        url: String,
        /// The innermost cause.
        detail: String,
    },
    /// Time was up.
    #[error("its card was not there after {after_ms} ms")]
    Slow {
        /// How long was waited.
        after_ms: u64,
    },
    /// Time was up before, in this process or another one.
    #[error(
        "its card was not there in time {seconds} s ago; lango does not wait for it, and tries again in the background"
    )]
    SlowBefore {
        /// How long ago.
        seconds: u64,
    },
    /// The connection broke in the middle of the card.
    #[error("the connection broke in the middle of its card: {detail}")]
    CutOff {
        /// The innermost cause.
        detail: String,
    },
    /// It wants to know who asks.
    #[error("`{url}` answered {status}: {next_step}")]
    Unauthorised {
        /// What was asked.
        url: String,
        /// 401 or 403.
        status: u16,
        /// Which setting gives the token.
        next_step: String,
    },
    /// Not found, or an error of the server.
    #[error("`{url}` answered {status} instead of a card")]
    Status {
        /// What was asked.
        url: String,
        /// The status.
        status: u16,
    },
    /// More redirects than are followed.
    #[error("its card moved more than {most} times, last to `{location}`")]
    TooManyRedirects {
        /// How many are followed.
        most: usize,
        /// Where the last one led.
        location: String,
    },
    /// A redirect that is not followed.
    #[error("its card moved to `{location}`, which is not followed: {why}")]
    RedirectRefused {
        /// Where it led.
        location: String,
        /// The rule.
        why: String,
    },
    /// More bytes than a card has.
    #[error("its card is longer than {most_bytes} bytes")]
    TooLarge {
        /// The bound.
        most_bytes: usize,
    },
    /// Something else than JSON.
    #[error("`{url}` gave {seen} instead of a card")]
    NotJson {
        /// What was asked.
        url: String,
        /// What came.
        seen: String,
    },
    /// JSON that ends too early.
    #[error("its card ends in the middle, after {bytes} bytes")]
    Truncated {
        /// How much came.
        bytes: usize,
    },
    /// JSON, and no object.
    #[error("its card is {seen}, not a JSON object")]
    NotAnObject {
        /// What came.
        seen: String,
    },
    /// Fields that lango cannot do without.
    #[error("its card lacks {fields}")]
    Missing {
        /// Their names.
        fields: String,
    },
    /// A card from before 1.0.
    #[error("its card is for A2A {version}; lango speaks 1.0 and later of 1.x")]
    OldProtocol {
        /// The version, as the card has it.
        version: String,
    },
    /// Only versions that lango does not speak.
    #[error("it speaks A2A {versions}; lango speaks 1.0 and later of 1.x")]
    UnsupportedVersion {
        /// The versions, as the card has them.
        versions: String,
    },
    /// Only bindings that lango does not speak.
    #[error("it offers {bindings}; lango speaks JSONRPC and HTTP+JSON")]
    UnsupportedBinding {
        /// The bindings, as the card has them.
        bindings: String,
    },
    /// An interface where lango does not go.
    #[error("its interface `{url}` is not used: {why}")]
    InterfaceRefused {
        /// Where it is.
        url: String,
        /// The rule.
        why: String,
    },
    /// It insists on an extension.
    #[error("it insists on the extension `{uri}`, which lango does not have")]
    NeedsExtension {
        /// The extension.
        uri: String,
    },
    /// The HTTP client could not be made.
    #[error("no HTTP client: {detail}")]
    NoClient {
        /// Why.
        detail: String,
    },
}
