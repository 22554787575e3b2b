//! Rules about the whole project that the compiler does not check.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod source;
mod spec;
mod tidy;
