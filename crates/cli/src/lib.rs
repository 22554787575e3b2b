//! The binary `lango` as a library: configuration, wiring, commands, and what is shown on a terminal. The binary itself is
//! a few lines, so that the tests reach everything.

pub mod app;
pub mod args;
pub mod commands;
pub mod config;
mod embedder;
pub mod exit;
pub mod hands;
pub mod hold;
pub mod knowledge;
pub mod markdown;
pub mod mcp;
pub mod model_choice;
pub mod screen;
mod text_file;
mod topology_file;
