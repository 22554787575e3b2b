//! The protocol over real HTTP on loopback.

mod client;
mod server;
