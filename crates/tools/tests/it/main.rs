//! The file tools, run through their seam on real files.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod attacks;
mod command_bench;
mod confined;
mod exec;
mod jobs;
mod list;
mod read;
mod skill_find;
mod skill_use;
mod spec;
mod special;
mod stat;
mod support;
