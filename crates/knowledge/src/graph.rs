//! The tools over the graph: `graph_query` and `graph_traverse` read facts, `graph_relate` adds and ends them.
//!
//! Results have one line per fact, and remarks in brackets. Facts that an agent adds are never trusted; they are shown
//! with a mark that names their source.

mod arguments;
mod neighbours;
mod query;
mod relate;
mod show;
mod suggest;
mod traverse;

use lango_core::{Clock, Tool};
use lango_store::Store;
use lango_store::graph::{MAX_FACTS, WalkLimits};
pub use neighbours::GraphNeighbours;
use std::sync::Arc;

/// The limits of the graph tools. Values beyond the graph's hard limits are clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphSettings {
    /// Maximum depth of a traversal, up to 6.
    pub max_depth: usize,
    /// Maximum number of facts per result, up to 1000.
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
            max_depth: self.max_depth.clamp(1, WalkLimits::MAX_DEPTH),
            max_results: self.max_results.clamp(1, MAX_FACTS),
        }
    }
}

/// Returns the tools over a graph. Each call sees only the facts of its user.
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
