//! The file tools, run through their seam on real files.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod attacked;
mod attacks;
mod canary;
mod confined;
mod edit;
mod list;
mod policy;
mod race;
mod random;
mod read;
mod search;
mod spec;
mod special;
mod stat;
mod support;
mod trash;
mod write;
