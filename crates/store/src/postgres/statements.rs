//! Statements that only PostgreSQL has.

pub(super) mod holds;
#[cfg(test)]
pub(crate) mod plans;
pub(super) mod start;
