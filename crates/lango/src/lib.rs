//! A self-hosted multi-agent runtime, as a library.
//!
//! An orchestrator without tools delegates to specialists, and each specialist has only the tools for its own work. The
//! runner enforces what other frameworks ask models to do: exact agent names, one owner per tool, limits over the whole
//! turn, approvals, and an append-only log from which an interrupted turn resumes.
//!
//! # Hello
//!
//! ```
//! use lango::Lango;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), lango::Error> {
//! let lango = Lango::builder().build()?;
//! let session = lango.session();
//! let report = session.run("hello").await?;
//! println!("{}: {}", report.author(), report.text());
//! # Ok(())
//! # }
//! ```
//!
//! This needs no key and no network: the default model, `offline/rules`, follows fixed rules so that you can see
//! everything around a model at work. [`connect_model`] connects to a real one:
//!
//! ```no_run
//! # use lango::{Lango, connect_model};
//! let model = connect_model("anthropic/claude-sonnet-5")?; // the key is in ANTHROPIC_API_KEY
//! let lango = Lango::builder().model(model).build()?;
//! # Ok::<(), lango::Error>(())
//! ```
//!
//! # A tool of your own
//!
//! A tool is one function with typed arguments. Its schema, with your doc comments, is derived from the type. The
//! [owner](CustomTool::owner) is the agent that may call it; no other agent can.
//!
//! ```
//! use lango::{ApprovalDecision, JsonSchema, Lango, approve_with, tool};
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Refund {
//!     /// The number of the order.
//!     order: String,
//!     /// The amount in cents.
//!     cents: u32,
//! }
//!
//! let refund = tool("refund", "Refunds an order", |refund: Refund| async move {
//!     Ok(format!("refunded {} cents of order {}", refund.cents, refund.order))
//! });
//! let lango = Lango::builder()
//!     .tool(refund.owner("operator").capability("refunds").needs_approval())
//!     .approver(approve_with(|approval| async move {
//!         match approval.request.arguments["cents"].as_u64() {
//!             Some(cents) if cents <= 1_000 => ApprovalDecision::allow(),
//!             _ => ApprovalDecision::deny("refunds above 10 dollars need a manager"),
//!         }
//!     }))
//!     .build()?;
//! # Ok::<(), lango::Error>(())
//! ```
//!
//! The agents of the default topology, and the prefixes of tools that they own without being named:
//!
//! | agent | work | prefixes |
//! |---|---|---|
//! | `operator` | commands, files, skills | `exec`, `fs_`, `skill_` |
//! | `navigator` | web pages | `browser_` |
//! | `vault` | keys, secrets, payments | `crypto_`, `secrets_`, `payment_` |
//! | `librarian` | search, retrieval, graph | `search_`, `rag_`, `graph_`, `save_knowledge`, `save_learning`, `create_skill`, `list_skills` |
//! | `planner` | plans | none |
//! | `chronicler` | memory | `memory_`, `observe_`, `reflect_` |
//!
//! An agent exists if it has tools; the planner always does. A real model decides by itself when to call a tool. The demo
//! model calls what a message names: `use refund {"order": "A-17", "cents": 500}`. A tool that blocks its thread belongs into
//! `tokio::task::spawn_blocking`.
//!
//! # Streaming
//!
//! [`Session::run`] starts the turn in a task of its own. Read its events, or await it for the report; either way it
//! runs to its end, also if the stream is dropped. [`TurnStream::cancel`] stops it.
//!
//! ```
//! # use lango::{Lango, TurnEvent};
//! use futures_util::StreamExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), lango::Error> {
//! # let session = Lango::builder().build()?.session();
//! let mut turn = session.run("make a plan for a picnic");
//! while let Some(event) = turn.next().await {
//!     match event? {
//!         TurnEvent::Draft { text, .. } => print!("{text}"),
//!         TurnEvent::Finished(report) => println!("{} model calls", report.model_calls),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Sessions that last
//!
//! ```
//! # use lango::{Lango, Storage};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), lango::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("sessions.db");
//! let lango = Lango::builder().store(Storage::Sqlite(path)).build()?;
//! let id = {
//!     let session = lango.session();
//!     session.run("hello").await?;
//!     session.id().clone() // also in `lango.catalog()`
//! };
//! let session = lango.open(id).await?; // in this process or a later one
//! session.run("hello again").await?;
//! # Ok(())
//! # }
//! ```
//!
//! A turn that was interrupted by a crash is resumed by the next turn of its session. A call that may have had its effect is
//! not repeated; lango asks [`Approver::reconcile`] what happened to it.
//!
//! # Limits
//!
//! [`Limits`] apply to a whole turn, over all of its agents. By default: 3 delegation rounds, 25 model calls, 50 tool calls, 15
//! minutes, and 2 minutes for a tool; tokens and cost are not limited.
//!
//! # Writing a model
//!
//! [`Model::call`] gets the instruction, the messages and the functions on offer. An orchestrator is offered `delegate` with
//! the arguments `agent`, `task` and `finish`; other agents are offered their tools. The first message of a sub-agent has the
//! conversation so far as JSON data, and its task after the heading `## Task`. A sub-agent returns a task that is not its own
//! with a reply that starts with `[REJECT]` and a reason. The stream yields pieces of text as they arrive, and ends with one
//! [`ModelEvent::Reply`] or an error.
//!
//! # Traits to implement
//!
//! | trait | methods | without it |
//! |---|---|---|
//! | [`Model`] | `name`, `info`, `call` | the demo model |
//! | [`Approver`] | `approve`, `reconcile`, `answered_elsewhere` | calls that need approval are denied |
//! | [`EventLog`] | `create`, `session`, `append`, `read` | sessions are in memory, SQLite or PostgreSQL |
//! | [`AttachmentStore`] | `put`, `read` | with an own log: messages cannot have files |
//! | [`RemoteAgent`] | see there | [`connect_remote`] for agents that speak A2A |
//!
//! The folder `examples` of this crate has a program for each of these, and one inside an axum service.
//!
//! # The whole application
//!
//! The feature `app` adds what the binary `lango` is made of: configuration files, sandboxed commands, vault, browser, MCP,
//! the server. See the module `app`.

#![warn(missing_docs)]

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(feature = "app")]
#[allow(missing_docs)] // Documented where the name does not say it, as in the other crates.
pub mod app;
mod approver;
mod builder;
mod connect;
mod error;
mod event_log;
mod lango;
mod questions;
mod replay;
mod session;
mod tool;
mod turn_run;
mod turn_stream;

pub use approver::{ApprovalDecision, Approver, DeferAll, DenyAll, PendingCall, approve_with};
pub use builder::{Builder, Storage};
pub use connect::{connect_model, connect_remote};
pub use error::Error;
pub use event_log::EventLog;
pub use lango::Lango;
pub use session::Session;
pub use tool::{CustomTool, tool, tool_with_caller};
pub use turn_run::{TurnAction, TurnRun};
pub use turn_stream::{TurnEvent, TurnStream};

pub use lango_core::{
    AgentName, AnswerSource, ApprovalAnswer, ApprovalId, ApprovalQuestion, ApprovalRequest,
    Approvals, AttachedFile, Attachment, AttachmentContents, AttachmentStore, BoxFuture, BoxStream,
    Call, CallId, CallStatus, Caller, Effect, Event, EventBatch, EventBody, EventRange, FileEdit,
    FrameId, Function, Grant, Inspection, Limit, Limits, Message, MessageOrigin, Model, ModelError,
    ModelEvent, ModelFault, ModelInfo, ModelReply, ModelRequest, ModelSettings, NewSession,
    OpaqueData, Outcome, PendingApproval, PermissionMode, PreviewLength, Price, PriceTier,
    ReasoningEffort, RemoteAgent, Risk, RuleSubject, Schema, SessionCatalog, SessionId,
    SessionQuery, SessionStatus, SessionStore, SessionSummary, StopReason, StoreError, Text,
    Timestamp, Tool, ToolError, ToolName, ToolOutput, ToolSpec, Trust, TurnFault, TurnId,
    TurnSettings, Usage, UserId, UserInput,
};
pub use lango_engine::{
    AgentSpec, ApprovalRule, CancelToken, Conversation, GateError, PrefixSpec, RuleAction, Runner,
    RunnerError, Topology, TopologyError, Tree, TreeError, TurnEnd, TurnReport, TurnUpdate,
    UpdateReceiver, UpdateSender, turn_updates,
};
pub use schemars::JsonSchema;
