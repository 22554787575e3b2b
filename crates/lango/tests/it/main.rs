//! Tests of the library as another program uses it.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod answered_elsewhere;
mod approvals;
mod event_log;
mod examples;
mod tools;
mod turns;
