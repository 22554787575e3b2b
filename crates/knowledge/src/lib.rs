//! What lango knows: a graph of facts, documents that can be searched, and memory of what was said.
//!
//! All of it is in the database of the sessions; every statement about that is in `lango-store`. Here is what the agents
//! can do with it: each part is a handful of tools over the store, bound to the user and the session of whoever calls.
mod embedding;
mod graph;
mod library;
mod memory;
mod model2vec;
mod words;

pub use embedding::OfflineEmbedder;
pub use graph::{GraphNeighbours, GraphSettings, graph_tools};
pub use library::{
    AddOptions, AddReport, Added, Document, Entry, Forgotten, Hit, Learning, Library, LibraryError,
    Mode, Neighbours, NewEntry, NewLearning, Progress, Query, ReindexReport, Results, Saved,
    Skipped, library_tools, retrieve_tool,
};
pub use memory::{Memory, MemoryReport, MemorySettings, memory_tools};
pub use model2vec::{Model2Vec, Model2VecError};
