//! The settings of a server: what its card says, and its limits.

use a2a::AgentSkill;
use lango_core::UserId;
use std::time::Duration;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The agent's name.
    pub name: String,
    /// The agent's purpose.
    pub description: String,
    /// The agent's version, not the protocol's.
    pub version: String,
    /// The URL under which clients reach this server, such as `https://agent.example`. It may have a path.
    pub base_url: String,
    /// The agent's skills; at least one.
    pub skills: Vec<AgentSkill>,
    /// The media types it accepts; at least one.
    pub input_modes: Vec<String>,
    /// The media types it returns; at least one.
    pub output_modes: Vec<String>,
    /// How callers authenticate.
    pub access: Access,
    /// The user of a request that no middleware has authenticated. Without it such a request is refused.
    pub default_user: Option<UserId>,
    /// The limits.
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

/// How callers authenticate. The server only announces it in its card: the check is a middleware around its router, which
/// leaves an `Extension<UserId>` in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// With a bearer token.
    Bearer,
    /// Without authentication.
    Open,
}

/// The limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// The size of a request body, in bytes: the largest file fits in it as base64.
    pub body_bytes: usize,
    /// The size above which a body counts as large.
    pub small_body_bytes: usize,
    /// Large bodies in memory at a time; others wait for [`body_timeout`](Self::body_timeout) at most.
    pub large_bodies: usize,
    /// The time until a body must have been received.
    pub body_timeout: Duration,
    /// Runs at a time, one in each conversation.
    pub running: usize,
    /// Messages that may wait for a run; one more is refused.
    pub queue: usize,
    /// How long a message may wait for a slot before it is refused.
    pub queue_timeout: Duration,
    /// Open streams at a time.
    pub streams: usize,
    /// Updates that a stream may be behind before it gets the whole task instead.
    pub max_lag: usize,
    /// The size of a task, messages and artifacts together, in bytes.
    pub task_bytes: usize,
    /// Messages that are stored of a task. The oldest are dropped, but never the first.
    pub history: usize,
    /// The interval at which a growing artifact is stored.
    pub write_every: Duration,
    /// The interval at which an open stream asks the agent for the status of a task without a run.
    pub poll_every: Duration,
    /// The interval at which tasks that run on other replicas are read for their subscribers here, and at which requests to
    /// cancel what runs here are read.
    pub follow_every: Duration,
    /// The interval between two scans for interrupted tasks.
    pub recover_every: Duration,
    /// Resumed tasks that run at a time, besides [`running`](Self::running).
    pub recovering: usize,
    /// How often a task is resumed before it fails, if each time the process ended before the work started. A server that
    /// shuts down in order does not count.
    pub max_attempts: u32,
    /// The time in which a run must stop.
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
