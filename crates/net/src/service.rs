//! HTTP to services that the user's configuration names: model providers, search services, remote agents and MCP
//! servers.
//!
//! A model cannot choose these hosts, so they do not pass the egress guard. All of them share the clients, the rule for
//! plain HTTP, the bounded bodies and event streams, and the retry delays of this module.

mod body;
mod client;
mod plain_http;
mod retry;
mod sse;

pub use body::{BodyError, BodyLimits, is_plain_body, next_chunk, read_body};
pub use client::{ClientOptions, root_cause, service_client};
pub use plain_http::{PlainHttp, UnencryptedCredential, is_this_machine, redacted_url};
pub use retry::{backoff, retry_after};
pub use sse::{EventTooLong, SseEvent, SseParser};
