//! The engine, driven from outside.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod support;
mod behaviour;
mod misbehaviour;
mod property;
mod capability;
mod instruction;
mod partition;
mod tree;
mod trees;
mod authors;
mod runner;
mod prompts;
mod refusals;
