//! The browser against real Chromium, in network namespaces of its own.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod pages;
mod support;
