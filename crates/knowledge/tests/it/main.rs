//! The knowledge, on a real database.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod graph;
mod graph_limits;
mod graph_walk;
mod library;
mod memory;
mod model2vec;
