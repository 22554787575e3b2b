//! Statements that only PostgreSQL has.

pub(super) mod leases;
#[cfg(test)]
pub(crate) mod plans;
pub(super) mod start;
