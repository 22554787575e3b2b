//! The protocol over real HTTP on loopback.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod both;
mod client;
mod server;
