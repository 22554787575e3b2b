//! Tests of the crate from the outside, one module per subject.

mod config;
mod markdown;
