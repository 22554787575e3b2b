//! The configured application: what the binary `lango` does, without its command line.
//!
//! [`App::load`] reads the configuration and builds everything that follows from it: agents, tools, sandbox, store,
//! vault, browser, MCP servers and remote agents. [`App::runner`] runs turns, [`server::PreparedServer`] serves them.

mod agent_tree;
pub mod agents;
mod application;
pub mod archive;
pub mod attach;
mod browser;
mod build;
pub mod clean_up;
pub mod credentials_file;
mod disabled_exec;
pub mod doctor;
pub mod egress;
mod embedder;
mod environment;
mod failure;
pub mod grants;
pub mod knowledge;
pub mod mcp;
mod memory_queue;
pub mod model_lists;
pub mod model_offers;
pub mod model_selector;
pub mod model_table;
mod notice;
pub mod paths;
pub mod payment;
pub mod project_trust;
mod provider_address;
pub mod remote_agents;
pub mod restore;
pub mod retention;
pub mod roster;
pub mod sandbox_setup;
mod served_app;
pub mod server;
pub mod sessions;
pub mod setup;
pub mod signals;
pub mod terminal_state;
pub mod token;
pub mod transfer;
pub mod undo;
pub mod vault;
mod warnings;
mod web;

pub use application::{App, Persistence};
pub use failure::{Failure, FailureKind};
pub use notice::NOTICE_TARGET;
