//! What lango knows: a graph of facts, documents that can be searched, and memory of what was said.
//!
//! All of it is in the database of the sessions; every statement about that is in `lango-store`. Here is what the agents
//! can do with it: each part is a handful of tools over the store, bound to the user and the session of whoever calls.
//!
//! [`Model2Vec`] makes vectors of texts from a local file of word pieces.

mod model2vec;

pub use model2vec::{Model2Vec, Model2VecError};
