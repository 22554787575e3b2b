//! What the graph knows of things that a search found.

use super::show::line;
use crate::library::Neighbours;
use lango_core::{BoxFuture, UserId};
use lango_store::Store;
use lango_store::graph::Name;
use std::sync::Arc;

/// How many facts are added to what was found.
const FACTS: usize = 20;

/// The graph beside a library.
pub struct GraphNeighbours(pub Arc<Store>);

impl Neighbours for GraphNeighbours {
    fn of<'a>(&'a self, user: &'a UserId, names: Vec<String>) -> BoxFuture<'a, Vec<String>> {
        Box::pin(async move {
            let names = names.iter().filter_map(|name| Name::new(name).ok());
            let facts = self.0.neighbours(user, names.collect(), FACTS).await;
            // A search works without the graph.
            facts.unwrap_or_default().iter().map(line).collect()
        })
    }
}
