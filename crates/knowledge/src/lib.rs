//! What lango knows: a graph of facts, documents that can be searched, and memory of what was said.
//!
//! All of it is in the database of the sessions; every statement about that is in `lango-store`. Here is what the agents
//! can do with it: each part is a handful of tools over the store, bound to the user and the session of whoever calls.
mod graph;
mod memory;
mod model2vec;

pub use graph::{GraphSettings, graph_tools};
pub use memory::{Memory, MemoryReport, MemorySettings, memory_tools};
pub use model2vec::{Model2Vec, Model2VecError};
