//! The parts of the binary `lango` that its commands and its tests share: the configuration, and what is shown on a
//! terminal.

pub mod config;
pub mod markdown;
