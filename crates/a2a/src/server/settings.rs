//! The settings of a server: the content of its card, and its limits.

use a2a::AgentSkill;
use lango_core::UserId;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub name: String,
    pub description: String,
    /// The version of the agent, not of the protocol.
    pub version: String,
    /// The URL under which clients reach this server, such as `https://agent.example`. It may have a path.
    pub base_url: String,
    /// The agent's skills; at least one.
    pub skills: Vec<AgentSkill>,
    /// The media types that the agent accepts; at least one.
    pub input_modes: Vec<String>,
    /// The media types that the agent returns; at least one.
    pub output_modes: Vec<String>,
    pub access: Access,
    /// The user for requests that no middleware has authenticated. If `None`, the server refuses these requests.
    pub default_user: Option<UserId>,
    pub limits: ServerLimits,
}

impl ServerSettings {
    /// Creates settings for an agent that accepts and returns text.
    pub fn new(name: &str, description: &str, version: &str, base_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            version: version.to_owned(),
            base_url: base_url.trim_end_matches('/').to_owned(),
            skills: Vec::new(),
            input_modes: vec!["text/plain".to_owned()],
            output_modes: vec!["text/plain".to_owned()],
            access: Access::Bearer,
            default_user: None,
            limits: ServerLimits::default(),
        }
    }
}

/// How callers authenticate. The server only announces this in its card. Middleware around its router performs the
/// check, and adds an `Extension<UserId>` to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// With a bearer token.
    Bearer,
    /// Without authentication.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// The maximum size of a request body, in bytes. The largest file must fit in it as base64.
    pub body_bytes: usize,
    /// The size in bytes above which a body counts as large.
    pub small_body_bytes: usize,
    /// How many large bodies may be in memory at a time. Others wait, at most for half of
    /// [`body_timeout`](Self::body_timeout).
    pub large_bodies: usize,
    /// The time within which a body must be received.
    pub body_timeout: Duration,
    /// The number of concurrent runs. Each conversation has at most one.
    pub running: usize,
    /// How many messages may wait for a run. The server refuses any more.
    pub queue: usize,
    /// How long a message may wait for a slot before the server refuses it.
    pub queue_timeout: Duration,
    /// The number of streams that may be open at a time.
    pub streams: usize,
    /// How many updates a stream may lag behind before it gets the whole task instead.
    pub max_lag: usize,
    /// The maximum size of a task's messages and artifacts together, in bytes.
    pub task_bytes: usize,
    /// How many messages of a task to store. The oldest ones are dropped, except the first.
    pub history: usize,
    /// The interval at which a growing artifact is stored.
    pub write_every: Duration,
    /// The interval at which an open stream asks the agent for the status of a task without a run.
    pub poll_every: Duration,
    /// The interval at which the server reads tasks that run on other replicas, for local subscribers, and cancel
    /// requests for local runs.
    pub follow_every: Duration,
    /// The interval between two scans for interrupted tasks.
    pub recover_every: Duration,
    /// The number of resumed tasks that may run at a time, in addition to [`running`](Self::running).
    pub recovering: usize,
    /// How many times a task is resumed before it fails, if the process ends each time before the work starts. Orderly
    /// shutdowns do not count.
    pub max_attempts: u32,
    /// The time within which a run must stop after a signal.
    pub stop_timeout: Duration,
    /// The interval of keep-alive comments in an open stream.
    pub keep_alive: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            small_body_bytes: 1 << 20,
            large_bodies: 4,
            body_timeout: Duration::from_secs(30),
            running: 1024,
            queue: 10_000,
            queue_timeout: Duration::from_secs(60),
            streams: 4096,
            max_lag: 256,
            task_bytes: 4 << 20,
            history: 200,
            write_every: Duration::from_millis(500),
            poll_every: Duration::from_secs(5),
            follow_every: Duration::from_millis(400),
            recover_every: Duration::from_secs(2),
            recovering: 64,
            max_attempts: 16,
            stop_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
        }
    }
}
