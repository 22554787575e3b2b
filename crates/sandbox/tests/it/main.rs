//! Tests of the sandbox with real commands and real escape attempts. None is skipped: where the sandbox does not work,
//! they fail.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod chromium;
mod everyone;
mod fixture;
mod ordinary_user;
