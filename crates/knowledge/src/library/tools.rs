//! The tools of the library: `save_knowledge`, `search_knowledge`, `save_learning`, `search_learnings`, `rag_retrieve`.
//!
//! What an agent saves may not be believed, and comes back with that mark and who said it, as does everything that was
//! found. A found text is indented, so that nothing in it stands where a mark does.

mod knowledge;
mod learnings;
mod retrieve;
mod show;

pub use retrieve::{Neighbours, retrieve_tool};

use super::{Library, LibraryError};
use lango_core::{Caller, Declaration, Effect, Risk, Source, Subject, Tool, ToolError, Trust};
use std::sync::Arc;

/// How many results a search shows, if it is not told, and at most.
const SHOWN: usize = 5;
const MOST_SHOWN: usize = 20;

/// The tools that save and search knowledge and learnings. That which retrieves from documents is
/// [`retrieve_tool`].
pub fn library_tools(library: &Library) -> Vec<Arc<dyn Tool>> {
    vec![
        knowledge::save_tool(library),
        knowledge::search_tool(library),
        learnings::save_tool(library),
        learnings::search_tool(library),
    ]
}

fn declaration(name: &'static str, description: &'static str, effect: Effect) -> Declaration {
    Declaration {
        name,
        description,
        effect,
        risk: Risk::Safe,
        subject: Subject::Arguments,
    }
}

/// Who says what an agent saves: the agent, and where it says it has it from.
fn source_of(caller: &Caller, named: Option<&str>) -> Source {
    let agent = &caller.agent;
    let name = match named.map(str::trim).filter(|named| !named.is_empty()) {
        Some(named) => format!("{agent}, from {}", show::line(named, 200)),
        None => agent.to_string(),
    };
    Source {
        name: name.into(),
        trust: Trust::Untrusted,
    }
}

fn shown(limit: Option<usize>) -> usize {
    limit.unwrap_or(SHOWN).clamp(1, MOST_SHOWN)
}

impl From<LibraryError> for ToolError {
    fn from(error: LibraryError) -> Self {
        Self::new(error.to_string())
    }
}
