//! The tools of the library: `save_knowledge`, `search_knowledge`, `save_learning`, `search_learnings`, `rag_retrieve`.
//!
//! What an agent saves is untrusted. Every result is marked with its trust label and source. The text of a result is
//! indented, so that nothing in it can look like a mark.

mod knowledge;
mod learnings;
mod retrieve;
mod show;

pub use retrieve::{Neighbours, retrieve_tool};

use super::{Library, LibraryError};
use lango_core::{
    Caller, Effect, Provenance, Risk, RuleSubject, Tool, ToolDeclaration, ToolError, Trust,
};
use std::sync::Arc;

/// The number of results if the call sets no limit.
const DEFAULT_RESULTS: usize = 5;
/// Maximum number of results per search.
const MAX_RESULTS: usize = 20;

/// Returns the tools that save and search knowledge and learnings. For documents there is [`retrieve_tool`].
pub fn library_tools(library: &Library) -> Vec<Arc<dyn Tool>> {
    vec![
        knowledge::save_tool(library),
        knowledge::search_tool(library),
        learnings::save_tool(library),
        learnings::search_tool(library),
    ]
}

fn declaration(name: &'static str, description: &'static str, effect: Effect) -> ToolDeclaration {
    ToolDeclaration {
        name,
        description,
        effect,
        risk: Risk::Safe,
        subject: RuleSubject::Arguments,
    }
}

/// Returns the source of what an agent saves: the agent, and the source that it names.
fn source_of(caller: &Caller, named: Option<&str>) -> Provenance {
    let agent = &caller.agent;
    let name = match named.map(str::trim).filter(|named| !named.is_empty()) {
        Some(named) => format!("{agent}, from {}", show::line(named, 200)),
        None => agent.to_string(),
    };
    Provenance {
        name: name.into(),
        trust: Trust::Untrusted,
    }
}

fn result_limit(limit: Option<usize>) -> usize {
    limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS)
}

impl From<LibraryError> for ToolError {
    fn from(error: LibraryError) -> Self {
        Self::new(error.to_string())
    }
}
