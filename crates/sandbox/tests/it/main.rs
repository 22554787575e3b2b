//! The sandbox from outside.
