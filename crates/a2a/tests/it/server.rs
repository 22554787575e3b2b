//! The bindings as a client sees them: real HTTP on loopback, a scripted agent behind the real server.

mod agent;
mod card;
mod copies;
mod crashing;
mod ending;
mod limits;
mod listing;
mod malformed;
mod memory;
mod message_ids;
mod refusing;
mod restarting;
mod sending;
mod streaming;
pub mod support;
mod world;
