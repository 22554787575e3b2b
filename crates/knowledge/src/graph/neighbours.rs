//! Facts from the graph about the names in search results.

use super::show::line;
use crate::library::Neighbours;
use lango_core::{BoxFuture, UserId};
use lango_store::Store;
use lango_store::graph::Name;
use std::sync::Arc;

/// Maximum number of facts for one search.
const FACTS: usize = 20;

/// The graph as a source of facts for the library.
pub struct GraphNeighbours(pub Arc<Store>);

impl Neighbours for GraphNeighbours {
    fn of<'a>(&'a self, user: &'a UserId, names: Vec<String>) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            let names = names.iter().filter_map(|name| Name::new(name).ok());
            let facts = self.0.neighbours(user, names.collect(), FACTS).await;
            // If the graph fails, the search works without it.
            facts.unwrap_or_default().iter().map(line).collect()
        })
    }
}
