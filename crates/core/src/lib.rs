//! The types and traits that all other crates share.
//!
//! A [session](SessionId) is a conversation, a turn is one user input and everything up to its answer, and an [`Event`]
//! is one stored fact of a turn. The seams between crates are small object-safe traits: [`Model`], [`Tool`],
//! [`RemoteAgent`], [`SessionStore`], [`SessionCatalog`], [`TaskStore`], [`TaskLog`], [`ChangeFeed`], [`WebCache`],
//! [`VaultStore`], [`PaymentStore`], [`TokenStore`], [`Clock`] and [`IdGenerator`].
//!
//! This crate performs no I/O and depends on no async runtime and no database.

mod access;
mod ambient;
mod approval;
mod attachment;
mod declaration;
mod embedder;
mod error_chain;
mod event;
mod ids;
mod input;
mod lease;
mod limits;
mod locality;
mod memory;
mod model;
mod model_settings;
mod outcome;
mod output_sink;
mod payment;
mod permission_mode;
mod price;
mod provenance;
mod remote;
mod schema;
mod store;
mod task;
pub mod text;
mod tool;
mod vault;
mod web_cache;

pub use access::{AccessToken, Scope, Scopes, TokenDigest, TokenKind, TokenStore};
pub use ambient::{Clock, Environment, IdGenerator, Timestamp};
pub use approval::{
    AnswerSource, ApprovalAnswer, ApprovalQuestion, ApprovalRequest, Grant, PendingApproval,
};
pub use attachment::{AttachedFile, Attachment, AttachmentContents, AttachmentStore, image_type};
pub use declaration::{
    InspectFn, PreviewFn, ToolDeclaration, declared_tool, parse_arguments, schema_of,
};
pub use embedder::{EmbedError, Embedder, EmbeddingModel, EmbeddingPurpose};
pub use error_chain::error_chain;
pub use event::{
    AgentModel, CallStatus, Event, EventBody, SkippedPath, TurnEnvironment, TurnFault, TurnSettings,
};
pub use ids::{AgentName, ApprovalId, CallId, FrameId, SessionId, ToolName, TurnId, UserId};
pub use input::{MessageOrigin, UserInput};
pub use lease::{BoxLease, BusyPolicy, SessionLease};
pub use limits::{Limit, Limits};
pub use locality::is_loopback_host;
pub use memory::{MemoryContext, MemoryProvider};
pub use model::{
    Call, Function, Message, Model, ModelError, ModelEvent, ModelFault, ModelInfo, ModelReply,
    ModelRequest, ModelSettings, OpaqueData, ReasoningEffort, StopReason, Usage,
};
pub use outcome::Outcome;
pub use output_sink::OutputSink;
pub use payment::{
    AccountStatus, BudgetKey, BudgetUse, NewTransaction, Payment, PaymentAccount, PaymentChange,
    PaymentChangeOutcome, PaymentLimit, PaymentLimits, PaymentQuery, PaymentState, PaymentStore,
    PaymentTotals, Reservation, ReservationOutcome, SignedTransaction, TotalsQuery,
};
pub use permission_mode::{PermissionMode, UnknownMode};
pub use price::{Price, PriceTier};
pub use provenance::{Provenance, Trust};
pub use remote::{RemoteAgent, RemoteAnswer, RemoteCall, RemoteError, RemoteEvent, RemoteThread};
pub use schema::Schema;
pub use store::{
    Approvals, EventBatch, EventRange, Exchange, ExchangeAnswer, MessageHit, MessageHits,
    MessageQuery, NewSession, SessionCatalog, SessionHead, SessionQuery, SessionStatus,
    SessionStore, SessionSummary, StoreError, UndoneChanges, UnfinishedTurn, UsageQuery, UsageRow,
};
pub use task::{
    ChangeFeed, RunningTask, StoreChange, TaskInsertOutcome, TaskLog, TaskPage, TaskPutOutcome,
    TaskQuery, TaskRecord, TaskStore,
};
pub use tool::{
    Caller, Effect, Escalation, FileEdit, GuardedTarget, Inspection, PathResolution, PreviewLength,
    PreviewRequest, Risk, RuleSubject, SiteAccess, Tool, ToolError, ToolOutput, ToolSpec,
};
pub use vault::{
    RecordSelection, VaultChange, VaultChangeOutcome, VaultEvent, VaultRecord, VaultSnapshot,
    VaultStore,
};
pub use web_cache::{CachedPage, WebCache};

/// Shared text. The log, the turn's state and the model request point to the same bytes.
pub type Text = std::sync::Arc<str>;

/// A boxed future, as the object-safe traits return it.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A boxed stream, as the object-safe traits return it.
pub type BoxStream<'a, T> = std::pin::Pin<Box<dyn futures_core::Stream<Item = T> + Send + 'a>>;
