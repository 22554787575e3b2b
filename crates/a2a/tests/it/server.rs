//! The bindings as a client sees them.
