//! The vocabulary and the seams of lango.
//!
//! Everything the other crates say to each other is said in these types: a [`Session`](SessionId) is a conversation, a
//! turn is one input of the user and all that follows until the answer, and an [`Event`] is one stored fact of a turn.
//! The seams ([`Model`], [`Tool`], [`RemoteAgent`], [`SessionStore`], [`SessionCatalog`], [`TaskStore`], [`TaskLog`], [`WebCache`], [`VaultStore`], [`PaymentStore`], [`Changes`], [`TokenStore`], [`Clock`], [`Ids`]) are small object-safe traits.
//!
//! This crate performs no I/O and knows no runtime and no database.

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
mod model;
mod model_settings;
mod outcome;
mod payment;
mod price;
mod recollection;
mod remote;
mod schema;
mod source;
mod store;
mod task;
mod tool;
mod vault;
mod web_cache;

pub use access::{AccessToken, Scope, Scopes, TokenDigest, TokenKind, TokenStore};
pub use ambient::{Clock, Environment, Ids, Timestamp};
pub use approval::{Answer, AnsweredBy, ApprovalRequest, Asks, Grant, Waiting};
pub use attachment::{AttachedFile, Attachment, AttachmentContents, AttachmentStore, image_type};
pub use declaration::{Declaration, Inspect, Preview, parse_arguments, schema_of};
pub use embedder::{EmbedError, Embedder, EmbeddingMaker, EmbeddingPurpose};
pub use error_chain::error_chain;
pub use event::{AgentModel, CallStatus, Event, EventBody, Fault, TurnEnvironment, TurnSettings};
pub use ids::{AgentName, ApprovalId, CallId, FrameId, SessionId, ToolName, TurnId, UserId};
pub use input::{MessageOrigin, UserInput};
pub use lease::{BoxLease, BusyPolicy, SessionLease};
pub use limits::{Limit, Limits};
pub use model::{
    Call, Function, Message, Model, ModelError, ModelEvent, ModelFault, ModelReply, ModelRequest,
    ModelSettings, ModelTerms, Opaque, ReasoningEffort, StopReason, Usage,
};
pub use outcome::Outcome;
pub use payment::{
    AccountStatus, BudgetKey, BudgetUse, NewTransaction, Payment, PaymentAccount, PaymentChange,
    PaymentChanged, PaymentLimit, PaymentLimits, PaymentQuery, PaymentState, PaymentStore,
    PaymentTotals, Reservation, Reserved, SignedTransaction, TotalsQuery,
};
pub use price::{Price, PriceTier};
pub use recollection::{MemoryContext, Recollection};
pub use remote::{RemoteAgent, RemoteAnswer, RemoteCall, RemoteError, RemoteEvent, RemoteThread};
pub use schema::Schema;
pub use source::{Source, Trust};
pub use store::{
    Approvals, Batch, Exchange, ExchangeAnswer, NewSession, Page, SessionCatalog, SessionHead,
    SessionQuery, SessionStatus, SessionStore, SessionSummary, StoreError, UnfinishedTurn,
    UsageQuery, UsageRow,
};
pub use task::{
    Change, Changes, Opened, Put, RunningTask, TaskLog, TaskPage, TaskQuery, TaskRecord, TaskStore,
};
pub use tool::{
    Caller, Effect, Escalation, Extent, GuardedTarget, Inspection, Risk, SiteAccess, Subject, Tool,
    ToolError, ToolOutput, ToolSpec,
};
pub use vault::{
    RecordSelection, VaultChange, VaultChanged, VaultEvent, VaultRecord, VaultSnapshot, VaultStore,
};
pub use web_cache::{CachedPage, WebCache};

/// Text that is shared, not copied: the log, the turn's state and the request to the model hold the same bytes.
pub type Text = std::sync::Arc<str>;

/// A future behind a seam.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream behind a seam.
pub type BoxStream<'a, T> = std::pin::Pin<Box<dyn futures_core::Stream<Item = T> + Send + 'a>>;
