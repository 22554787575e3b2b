//! Tests of the MCP client with a scripted server that runs in the sandbox or listens on this machine.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod calls;
mod failures;
mod http;
mod login;
mod masks;
mod pins;
mod proxied;
mod same_names;
mod sandboxed;
mod support;
