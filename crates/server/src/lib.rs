//! lango over HTTP. The [`auth`] middleware checks token, host and origin. [`TaskRunner`] runs each task of a caller as
//! a turn of a session, and reports its progress and result through the A2A protocol. [`Recovery`] resumes interrupted
//! tasks and turns.

mod approval_expiry;
mod attempts;
pub mod auth;
mod context;
mod conversations;
mod files;
mod listen;
mod messages;
mod readiness;
mod recovery;
mod restore;
mod task_commit;
mod task_runner;
mod turn_events;

pub use attempts::latest_attempt;
pub use context::{Notice, ServerContext};
pub use files::INPUT_MODES;
pub use listen::{ConnectionLimits, serve};
pub use readiness::readiness;
pub use recovery::Recovery;
pub use restore::{InFlight, RestoredStore};
pub use task_runner::TaskRunner;

/// The path of the liveness check.
pub const HEALTH: &str = "/healthz";

/// The path of the readiness check.
pub const READY: &str = "/readyz";
