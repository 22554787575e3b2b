//! The engine, driven from outside.
