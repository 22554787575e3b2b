//! lango's MCP client: the tools of Model Context Protocol servers, as tools that agents can be given.
//!
//! A server is somebody else's program. One that is started here runs inside the sandbox's launcher; one at an address is
//! spoken to over HTTP. Either way nothing that it says is believed: what its tools return is marked as data from outside,
//! and what it says of its tools is pinned when it is first seen. As long as the pins hold, a start of lango neither starts
//! nor asks the server; it is connected when a tool of it is first called. A tool whose description or arguments are not
//! what was pinned is not called until a person has seen it.
//!
//! A program starts in a private directory, not in the workspace, and runs no code that agents could have written unless
//! the user trusts that very file (`program`).
//!
//! [`Servers`] is the whole of it: [`Servers::open`] builds the tools, [`Servers::close`] ends what was started. Who is
//! given the tools and who is asked before one runs is decided elsewhere.

mod attachments;
mod connection;
mod content;
mod error;
mod form;
mod frames;
mod handler;
mod http;
mod legacy_sse;
mod names;
mod oauth;
mod pins;
mod place;
mod private_file;
mod process;
mod program;
mod program_proxy;
mod progress;
mod server;
mod servers;
mod settings;
mod task_support;
mod tool;
mod traffic;

pub use error::ConnectError;
pub use form::Form;
pub use oauth::{LoginError, seal_grants};
pub use pins::{Pending, PinError, ToolState};
pub use place::is_private_way;
pub use private_file::{FileSeal, is_sealed};
pub use program::PendingFile;
pub use program_proxy::{ProgramProxy, SecretVariable};
pub use progress::Progress;
pub use server::Pauses;
pub use servers::{Overview, Probe, Probed, ProbedTool, Servers, Setup, Start, ToolOverview};
pub use settings::{
    Address, ClientSettings, Program, Reach, Secret, ServerSettings, Token, Variable,
};

/// The version of the protocol that lango speaks.
pub const PROTOCOL_VERSION: &str = "2025-11-25";
