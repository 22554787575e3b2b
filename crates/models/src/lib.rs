//! The models lango can ask.
//!
//! [`Offline`] is always there: fixed rules, no AI, no key, no network. It reads the routing table out of the instruction it
//! is sent, delegates, calls real tools and refuses what it cannot do, so that everything around a model can be tried.

mod offline;

pub use offline::Offline;
