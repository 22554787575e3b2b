//! The sandbox from outside: real commands, real attempts to get out. Nothing here is skipped: where the sandbox is not
//! there, these tests fail.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod chromium;
mod everyone;
mod ordinary_user;
mod world;
