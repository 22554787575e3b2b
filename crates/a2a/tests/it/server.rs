//! Tests of the server through its bindings: real HTTP on loopback, with a scripted agent behind the real server.

mod agent;
mod card;
mod crashing;
mod ending;
mod limits;
mod listing;
mod malformed;
mod memory;
mod message_ids;
mod refusing;
mod replicas;
mod restarting;
mod sending;
mod streaming;
pub(crate) mod support;
mod test_replica;
