//! Tests of the library as another program uses it.

mod approvals;
mod event_log;
mod examples;
mod tools;
mod turns;
