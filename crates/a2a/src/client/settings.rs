//! The settings of a remote agent, and the timeouts for remote agents.

use lango_core::AgentName;
use lango_secrets::{Credential, Masks};
use reqwest::header::HeaderName;
use std::fmt;
use std::time::Duration;

/// The configuration of a remote agent.
#[derive(Clone)]
pub struct RemoteSettings {
    /// The agent's name in this configuration.
    pub name: AgentName,
    /// The URL of the card. If its path ends in `.json`, or it has a query, it is used as it is; otherwise lango
    /// appends `/.well-known/agent-card.json`.
    pub card_url: String,
    /// The bearer token. It is sent only to the origin of `card_url`.
    pub token: Option<Credential>,
    /// Other request headers, such as an API key. They are sent only to the origin of `card_url`.
    pub headers: Vec<(HeaderName, Credential)>,
    /// The time limit of a call, if it differs from that of tool calls.
    pub timeout: Option<Duration>,
    /// The secret values to mask in everything that the agent sends.
    pub masks: Masks,
    /// Where the token comes from or should come from, for error messages: ``environment variable `NAME` ``.
    pub token_source: String,
}

impl fmt::Debug for RemoteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSettings")
            .field("name", &self.name)
            .field("card_url", &self.card_url)
            .field("has_token", &self.token.is_some())
            .field("headers", &self.headers)
            .field("timeout", &self.timeout)
            .field("token_source", &self.token_source)
            .finish()
    }
}

/// The timeouts and intervals for calls to remote agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteTimeouts {
    /// The time limit for reading a card, including all redirects.
    pub card: Duration,
    /// The time limit for connecting.
    pub connect: Duration,
    /// The time limit for the next byte of a stream or an answer, once the id of the task is known. If it expires, the
    /// task is polled.
    pub idle: Duration,
    /// The time limit for the first answer to a message, before the id of the task is known.
    pub reply: Duration,
    /// The first interval between two polls of a task. It grows to at most ten times this value. After a failure, lango
    /// waits twice as long, and doubles the wait with each consecutive failure.
    pub poll_interval: Duration,
    /// The first wait before an unusable card is read again. It doubles each time, up to sixty times this value.
    pub retry_interval: Duration,
}

impl Default for RemoteTimeouts {
    fn default() -> Self {
        Self {
            card: Duration::from_secs(3),
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(60),
            reply: Duration::from_secs(600),
            poll_interval: Duration::from_millis(200),
            retry_interval: Duration::from_secs(5),
        }
    }
}
