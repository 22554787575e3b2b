//! What the harnesses share that try to break "never lost, never twice" with the real binary: a place to run it in, a
//! scripted model, callers, a person who answers, and the oracle that judges what is left at the end.

pub mod caller;
pub mod client;
pub mod cpu;
pub mod evidence;
pub mod oracle;
pub mod person;
pub mod place;
pub mod planted;
pub mod random;
pub mod script;
pub mod serving;
pub mod settling;
