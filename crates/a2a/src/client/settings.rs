//! What is configured of a remote agent, and how long lango waits for one.

use lango_core::AgentName;
use lango_secrets::{Credential, Masks};
use reqwest::header::HeaderName;
use std::fmt;
use std::time::Duration;

/// A remote agent as it is configured.
#[derive(Clone)]
pub struct RemoteSettings {
    /// The name it is registered under here.
    pub name: AgentName,
    /// Where its card is. A URL whose path ends in `.json`, or that has a query, is the card's own; to any other,
    /// `/.well-known/agent-card.json` is appended.
    pub card_url: String,
    /// The bearer token, if it wants one. It is sent to the origin of `card_url` and nowhere else.
    pub token: Option<Credential>,
    /// More headers of its requests, such as that of an API key. Their values go where the token goes.
    pub headers: Vec<(HeaderName, Credential)>,
    /// How long a call may take, if that is not the time of a tool call.
    pub timeout: Option<Duration>,
    /// The values that are masked in what it says.
    pub masks: Masks,
    /// Where the token comes from or would come from, for error texts: ``environment variable `NAME` ``.
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

/// How long lango waits for remote agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a card, from the first packet to the last byte, whatever is in between.
    pub card: Duration,
    /// For a connection.
    pub connect: Duration,
    /// For the next byte of a stream or of an answer, where the task can be asked for instead.
    pub idle: Duration,
    /// For the first sign of a task that was sent, when nothing else than waiting can be done.
    pub reply: Duration,
    /// Before a task is asked for again; grows to ten times as much. After a failure it is twice as much, and doubles.
    pub pace: Duration,
    /// Before a card that could not be used is tried again; doubles up to sixty times as much.
    pub retry: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            card: Duration::from_secs(3),
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(60),
            reply: Duration::from_secs(600),
            pace: Duration::from_millis(200),
            retry: Duration::from_secs(5),
        }
    }
}
