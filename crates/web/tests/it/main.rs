//! Tests the web tools with real servers on loopback.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod cache_rules;
mod caching;
mod fetch;
mod fetch_formats;
mod policy;
mod search;
mod support;
