//! The MCP client against a scripted server that really runs inside the sandbox, or listens on this machine.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod breaking;
mod calling;
mod http;
mod logging_in;
mod masks;
mod pins;
mod proxied;
mod same_names;
mod sandboxed;
mod support;
