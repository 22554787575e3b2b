//! Embedding models that run without a server.

mod offline;

pub use offline::OfflineEmbedder;
