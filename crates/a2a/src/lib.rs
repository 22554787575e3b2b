//! The A2A protocol, version 1.0, in both directions: `client` calls [remote agents](lango_core::RemoteAgent), and
//! `server` exposes an agent to clients over JSON-RPC and HTTP+JSON.

pub mod client;
mod linked_files;
pub mod server;

pub use linked_files::{LinkedFileError, LinkedFiles, name_in_url};
