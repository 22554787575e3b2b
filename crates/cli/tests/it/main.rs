//! The crate from the outside, one module for each subject: the library's parts, then the real binary.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod agent_faults;
mod agent_files;
mod agent_trust;
mod agents;
mod approvals;
mod approvals_screen;
mod archive;
mod bad_config;
mod bad_input;
mod bad_store;
mod cancel;
mod chat;
mod clean_up;
mod config;
mod deleting;
mod disk;
mod doctor;
mod environment;
mod exposure;
mod full;
mod grants;
mod hands;
mod home_workspace;
mod keeping;
mod knowledge;
mod labels;
mod lango;
mod markdown;
mod mcp;
mod mcp_hidden_code;
mod mcp_settings;
mod mcp_starts;
mod models;
mod project_instructions;
mod remotes;
mod run;
mod serve;
mod sessions;
mod settings;
mod store;
mod structured;
mod terminal;
mod untrusted_project;
