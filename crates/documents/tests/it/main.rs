//! Pages of the web: what is content, and what a page says of itself.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod content;
mod metadata;
