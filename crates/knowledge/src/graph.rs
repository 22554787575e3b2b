//! The tools over the graph: `graph_query` and `graph_traverse` look, `graph_relate` keeps and ends facts.
//!
//! What they give back is one line a fact and remarks in brackets. What an agent relates is never trusted: its facts
//! carry their source as a mark, and the mark comes back with them.

mod arguments;
mod neighbours;
mod query;
mod relate;
mod show;
mod suggest;
mod traverse;

use lango_core::{Clock, Tool};
use lango_store::Store;
use lango_store::graph::{MOST_FACTS, WalkLimits};
pub use neighbours::GraphNeighbours;
use std::sync::Arc;

/// How much the tools show. What is beyond the hard limits of the graph is taken as if it were at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphSettings {
    /// How deep a walk goes; up to 6.
    pub max_depth: usize,
    /// How many facts a result has; up to 1000.
    pub max_results: usize,
}

impl Default for GraphSettings {
    fn default() -> Self {
        let WalkLimits { depth, facts, .. } = WalkLimits::default();
        Self {
            max_depth: depth,
            max_results: facts,
        }
    }
}

impl GraphSettings {
    fn within_bounds(self) -> Self {
        Self {
            max_depth: self.max_depth.clamp(1, WalkLimits::MOST_DEPTH),
            max_results: self.max_results.clamp(1, MOST_FACTS),
        }
    }
}

/// The tools over a graph. Each call sees the facts of its own user.
pub fn graph_tools(
    graph: Arc<Store>,
    clock: Arc<dyn Clock>,
    settings: GraphSettings,
) -> Vec<Arc<dyn Tool>> {
    let settings = settings.within_bounds();
    vec![
        traverse::tool(graph.clone(), settings),
        query::tool(graph.clone(), settings),
        relate::tool(graph, clock),
    ]
}
