//! What a server is told when it is made: what its card says, and its bounds.

use a2a::AgentSkill;
use lango_core::UserId;
use std::time::Duration;

/// What a server is told when it is made.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The agent's name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its version, not the protocol's.
    pub version: String,
    /// Where clients reach this server, such as `https://agent.example`; a path is kept.
    pub base_url: String,
    /// What it can do; at least one.
    pub skills: Vec<AgentSkill>,
    /// The media types it takes; at least one.
    pub input_modes: Vec<String>,
    /// The media types it gives; at least one.
    pub output_modes: Vec<String>,
    /// How callers show who they are.
    pub access: Access,
    /// Whose a request is that came through no token check. Without it such a request is refused.
    pub default_user: Option<UserId>,
    /// The bounds.
    pub limits: ServerLimits,
}

impl ServerSettings {
    /// Settings for an agent that takes and gives text.
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

/// How callers show who they are. The server only says so in its card: the check is a layer around its router, which leaves
/// an `Extension<UserId>` in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// With a bearer token.
    Bearer,
    /// Not at all.
    Open,
}

/// The bounds of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// The longest body of a request, in bytes: the largest file fits in it as base64.
    pub body_bytes: usize,
    /// A body that is longer than this counts as large.
    pub small_body_bytes: usize,
    /// The most large bodies that are in memory at one time; others wait for [`body_wait`](Self::body_wait) at most.
    pub large_bodies: usize,
    /// How long a body may take to come.
    pub body_wait: Duration,
    /// The most runs at work at one time.
    pub running: usize,
    /// The most open streams.
    pub streams: usize,
    /// How many updates a stream may be behind before it is given the whole task instead.
    pub lag: usize,
    /// The longest a task may get, messages and artifacts together, in bytes.
    pub task_bytes: usize,
    /// The most messages that are kept of a task; the oldest go first, never the first of all.
    pub history: usize,
    /// How often at most a growing artifact is written down.
    pub write_every: Duration,
    /// How often a stream that waits asks what became of its task.
    pub look_again: Duration,
    /// How often a task that another copy is at work on is read for those who listen to it here, and how often is looked
    /// which tasks at work here are to be cancelled.
    pub follow_every: Duration,
    /// How often is looked for tasks that nobody is at work on any more.
    pub recover_every: Duration,
    /// The most such tasks at work at one time, besides [`running`](Self::running).
    pub recovering: usize,
    /// How often a task is taken up again before it has failed, if each time the process ended before the work began. A
    /// server that stops in order does not count.
    pub attempts: u32,
    /// How long a run is given to stop.
    pub stop_wait: Duration,
    /// How often an open stream says that it is alive.
    pub keep_alive: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            small_body_bytes: 1 << 20,
            large_bodies: 4,
            body_wait: Duration::from_secs(30),
            running: 64,
            streams: 256,
            lag: 256,
            task_bytes: 4 << 20,
            history: 200,
            write_every: Duration::from_millis(500),
            look_again: Duration::from_secs(5),
            follow_every: Duration::from_millis(400),
            recover_every: Duration::from_secs(2),
            recovering: 64,
            attempts: 16,
            stop_wait: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
        }
    }
}
