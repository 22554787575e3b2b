//! Tests of the server over HTTP, from the perspective of a caller.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod auth;
mod files;
mod listen;
mod outages;
mod recovery;
mod restore;
mod support;
mod task_runner;
