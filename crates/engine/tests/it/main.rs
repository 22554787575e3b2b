//! The engine, driven from outside.
mod support;
mod behaviour;
mod misbehaviour;
mod property;
mod capability;
mod instruction;
mod partition;
mod tree;
mod trees;
