//! The crate from the outside, one module for each subject.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod config;
mod markdown;
