//! lango's MCP client: offers the tools of Model Context Protocol servers to agents.
//!
//! A server is third-party code. A local program runs in the sandbox; a remote server is reached over HTTP. lango
//! trusts neither: it marks the results of their tools as untrusted data, and pins the definitions of the tools when it
//! first sees them. While the pins are valid, lango starts without contacting the server and connects on the first call
//! of one of its tools. If a tool's description or arguments differ from the pin, lango does not call it until the user
//! has accepted the change.
//!
//! A program starts in a private directory, not in the workspace. It runs code that agents could have written only if
//! the user trusts that file (`program`).
//!
//! [`Servers::open`] builds the tools, [`Servers::close`] stops the servers. Which agent gets a tool, and whether the
//! user is asked before a call, is decided by other crates.

mod attachments;
mod confidential_url;
mod connection;
mod content;
mod error;
mod handler;
mod http;
mod legacy_sse;
mod names;
mod oauth;
mod pins;
mod private_file;
mod process;
mod program;
mod program_proxy;
mod progress;
mod server;
mod servers;
mod settings;
mod stdio;
mod task_support;
mod tool;
mod tool_definition;
mod traffic;

pub use confidential_url::is_confidential_url;
pub use error::ConnectError;
pub use oauth::{LoginError, seal_grants};
pub use pins::{PendingTool, PinError, ToolState};
pub use private_file::{FileSeal, is_sealed};
pub use program::{PendingFile, find_program};
pub use program_proxy::{ProgramProxy, SecretVariable};
pub use progress::StartProgress;
pub use server::Backoff;
pub use servers::{
    ProbeResult, ProbedTool, ServerOverview, ServerProbe, Servers, ServersSetup, StartMode,
    ToolOverview,
};
pub use settings::{
    EnvCredential, EnvVariable, HiddenText, HttpSettings, OauthClientSettings, ProgramSettings,
    ServerSettings, ServerTarget,
};
pub use tool_definition::ToolDefinition;

/// The protocol version that lango speaks.
pub const PROTOCOL_VERSION: &str = "2025-11-25";
