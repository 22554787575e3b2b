//! Tests the main content and the metadata of web pages.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod content;
mod metadata;
