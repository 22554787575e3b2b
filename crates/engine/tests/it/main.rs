//! The engine, driven from outside.
mod support;
mod behaviour;
mod misbehaviour;
mod property;
