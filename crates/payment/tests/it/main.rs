//! Payments against nodes that lie or fail, and what the tools refuse. On a chain they are tried by `scripts/payments`.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod hostile_node;
mod node;
mod tools;
