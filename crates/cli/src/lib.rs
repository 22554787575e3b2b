//! The binary `lango` as a library: configuration, wiring, commands, and what is shown on a terminal. The binary itself is
//! a few lines, so that the tests reach everything.

mod agent_tree;
pub mod app;
pub mod args;
mod attach;
mod browser;
mod clean_up;
pub mod commands;
pub mod config;
pub mod core_dumps;
mod egress;
mod elsewhere;
mod embedder;
mod environment;
pub mod exit;
pub mod hands;
pub mod knowledge;
pub mod markdown;
pub mod mcp;
mod memory_queue;
pub mod model_choice;
mod model_lists;
mod model_offers;
mod no_commands;
mod payment;
pub mod redact;
pub mod roster;
pub mod screen;
mod served_app;
pub mod sessions;
mod signals;
mod terminal_state;
mod text_file;
mod token;
mod vault;
mod warnings;
mod web;
