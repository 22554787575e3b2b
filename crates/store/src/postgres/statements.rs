//! Statements that only PostgreSQL has.

pub(super) mod leases;
pub(super) mod start;

#[cfg(test)]
pub(crate) use crate::engine::plans;
