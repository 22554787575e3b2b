//! Tests of the tools through their trait, on real files and in the real sandbox.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod attacked;
mod attacks;
mod bound_previews;
mod canary;
mod command_fixture;
mod confined;
mod edit;
mod exec;
mod exec_attacks;
mod exec_live;
mod exec_network;
mod exec_output;
mod exec_secrets;
mod executed;
mod guarded;
mod irreversible;
mod jobs;
mod linked_paths;
mod list;
mod policy;
mod race;
mod random;
mod read;
mod search;
mod skill_create;
mod skill_find;
mod skill_use;
mod spec;
mod special;
mod stat;
mod support;
mod trash;
mod trash_copies;
mod undo;
mod undo_attributes;
mod undo_interrupted;
mod undo_kills;
mod undo_races;
mod undo_records;
mod undo_versions;
mod write;
mod write_races;
