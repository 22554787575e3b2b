//! The launcher for commands that nobody vouches for, and the policy that says what they may touch.

mod child;
mod command;
#[cfg(target_os = "linux")]
mod descriptors;
mod ended;
mod error;
#[cfg(target_os = "linux")]
mod inner;
mod kept;
mod launcher;
mod layers;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod plan;
mod policy;
#[cfg(target_os = "linux")]
mod report;
mod strength;
mod view;

pub use child::Child;
pub use command::{Command, Limits, Stdin};
pub use ended::{Ended, ExitKind, Stopped};
pub use error::LaunchError;
#[cfg(target_os = "linux")]
pub use inner::enter;
pub use launcher::{Helper, Launcher};
#[doc(hidden)]
pub use layers::{Layer, Layers};
pub use policy::{Access, Network, Policy, is_kept_name};
pub use strength::{Check, LimitsBy, SelfTest, Strength};
