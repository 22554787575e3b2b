//! Tests of the models over real HTTP on loopback, with valid and invalid replies.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod anthropic;
mod bounds;
mod embedding;
mod embedding_faults;
mod facts;
mod faults;
mod gemini;
mod golden;
mod masks;
mod names;
mod offline;
mod opaque;
mod openai;
mod openai_calls;
mod progress;
mod provider_forms;
mod recorded;
mod requests;
mod resilient;
mod responses;
mod responses_requests;
mod rows;
mod status;
mod support;
mod timeouts;
mod turns;
