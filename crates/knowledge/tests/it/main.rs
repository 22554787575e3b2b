//! The knowledge, on a real database.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod library;
