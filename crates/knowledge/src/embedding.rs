//! What turns texts into vectors.

mod offline;

pub use offline::OfflineEmbedder;
