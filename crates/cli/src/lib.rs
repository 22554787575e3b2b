//! The binary `lango` as a library: arguments, commands, terminal output and exit codes. `main.rs` is only a few lines,
//! so that tests can reach everything; what the commands do is in the crate `lango`.

pub mod args;
pub mod commands;
pub mod core_dumps;
pub mod exit;
pub mod logs;
pub mod screen;
pub mod terminal;
