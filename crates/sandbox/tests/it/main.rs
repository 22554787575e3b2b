//! The sandbox from outside: real commands, real attempts to get out. Nothing here is skipped: where the sandbox is not
//! there, these tests fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod everyone;
mod ordinary_user;
mod world;
