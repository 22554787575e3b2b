//! The launcher for commands that nobody vouches for, and the policy that says what they may touch.

mod child;
mod command;
mod ended;
mod error;
mod launcher;
mod policy;
mod strength;

pub use child::Child;
pub use command::{Command, Limits, Stdin};
pub use ended::{Ended, ExitKind, Stopped};
pub use error::LaunchError;
pub use launcher::{Helper, Launcher};
pub use policy::{Access, Network, Policy, is_kept_name};
pub use strength::{Check, LimitsBy, SelfTest, Strength};

/// To be called first thing in `main` when the first argument is the helper's mark. Never returns.
pub fn enter(_arguments: impl Iterator<Item = std::ffi::OsString>) -> ! {
    std::process::exit(125)
}
