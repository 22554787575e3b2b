//! Tests of the API.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod access;
mod agui;
mod approvals;
mod events;
mod malformed;
mod openai;
mod openai_errors;
mod openai_sessions;
mod sessions;
mod sign_in;
mod slow_turns;
mod support;
mod turns;
