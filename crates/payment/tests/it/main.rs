//! Tests of payments with nodes that lie or fail, and of what the tools refuse. `scripts/payments` tests payments on a real chain.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod hostile_node;
mod node;
mod tools;
