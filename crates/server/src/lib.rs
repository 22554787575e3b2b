//! lango over HTTP. [`door`] says who may come in: a token, a known host, no foreign page. Behind it is the
//! [`Desk`], which gives each task from outside to the runner as a turn of a session, and reports what becomes of it in the
//! words of the A2A protocol.

mod desk;
pub mod door;
mod files;
mod listen;
mod telling;
mod words;

pub use desk::{Desk, House};
pub use files::INPUT_MODES;
pub use listen::{Bounds, serve};

/// The place that says whether the server is alive.
pub const HEALTH: &str = "/healthz";
