//! Integration tests of the engine.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod agent_files;
mod agent_models;
mod approval_laws;
mod approval_order;
mod approval_rules;
mod approvals;
mod attachments;
mod authors;
mod behaviour;
mod bench;
mod budget;
mod capability;
mod crash_laws;
mod duplicates;
mod failpoints;
mod inspections;
mod instruction;
mod invalid_trees;
mod masks;
mod misbehaviour;
mod model_calls;
mod partition;
mod project_instructions;
mod prompt_cost;
mod prompts;
mod property;
mod remotes;
mod request_settings;
mod restored;
mod resume;
mod resume_checks;
mod runner;
mod schema_laws;
mod sites;
mod stop_reasons;
mod storing;
mod structured;
mod support;
mod tool_assignments;
mod tree;
mod trees;
mod trust;
mod trust_resume;
