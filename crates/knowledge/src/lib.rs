//! lango's knowledge: a graph of facts, a library of searchable documents, and memory of conversations.
//!
//! All of it is in the same database as the sessions; the SQL is in `lango-store`. This crate provides the tools over
//! that store. Each call sees only the data of its caller's user and session.

mod date;
mod embedding;
mod graph;
mod library;
mod memory;
mod model2vec;
mod words;

pub use embedding::OfflineEmbedder;
pub use graph::{GraphNeighbours, GraphSettings, graph_tools};
pub use library::{
    AddOptions, AddProgress, AddReport, DeleteReport, FileOutcome, KnowledgeEntry, Learning,
    Library, LibraryDocument, LibraryError, LibraryHit, LibraryQuery, LibraryResults,
    LibrarySearchMode, Neighbours, NewKnowledge, NewLearning, ReindexReport, SaveReport,
    SkippedFile, library_tools, retrieve_tool,
};
pub use memory::{ListedMemory, Memory, MemoryKind, MemoryReport, MemorySettings, memory_tools};
pub use model2vec::{Model2Vec, Model2VecError};
