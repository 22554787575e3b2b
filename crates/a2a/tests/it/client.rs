//! Remote agents: cards, calls, faults. Against servers of our own on loopback, which do what they are told, wrong things
//! included.

mod answers;
mod calls;
mod cards;
mod echoes;
mod faults;
mod headers;
mod remotes;
mod replies;
pub mod script;
mod streams;
pub mod support;
