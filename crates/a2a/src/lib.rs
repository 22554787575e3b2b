//! The A2A protocol, version 1.0, both ways: agents elsewhere as [remote agents](lango_core::RemoteAgent) of lango, and an
//! agent here for whoever calls it over JSON-RPC or HTTP+JSON.

pub mod client;
mod linked_files;
pub mod server;

pub use linked_files::{LinkedFileError, LinkedFiles, name_in_url};
