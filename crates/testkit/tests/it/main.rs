//! The project, looked at from outside: rules that no compiler holds.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod source;
mod spec;
mod tidy;
