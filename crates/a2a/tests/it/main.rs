//! The protocol over real HTTP on loopback.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod client;
mod end_to_end;
mod server;
