//! The file tools, run through their seam on real files.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod command_bench;
mod confined;
mod edit;
mod exec;
mod list;
mod policy;
mod read;
mod search;
mod skill_find;
mod spec;
mod special;
mod stat;
mod support;
mod trash;
mod write;
