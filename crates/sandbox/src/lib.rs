//! The launcher for commands that nobody vouches for, and the policy that says what they may touch.
//!
//! On Linux a command is held by two layers at once. Outside, bubblewrap gives it namespaces of its own and a disk that
//! holds nothing but what the [`Policy`] opens. Inside, the kernel's Landlock and seccomp hold even if that view should
//! not. A guard stays with the command, keeps it to its [`Limits`], and ends all of its processes when the call ends,
//! when [`Child`] is dropped, and when lango is killed. If a layer cannot be set up, nothing runs.
//!
//! ```no_run
//! use lango_sandbox::{Command, Helper, Launcher, Policy, Strength};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut arguments = std::env::args_os().skip(1);
//!     if arguments.next().is_some_and(|first| first == "__sandbox") {
//!         lango_sandbox::enter(arguments);
//!     }
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//!     runtime.block_on(async {
//!         let program = std::env::current_exe()?;
//!         let launcher = Launcher::new(Helper { program, arguments: vec!["__sandbox".into()] });
//!         assert_eq!(launcher.self_test().await.strength, Strength::Full);
//!         let policy = Policy::of("/home/ada/work".into());
//!         let mut child = launcher.spawn(&policy, Command::new(["ls"], "/home/ada/work".into()))?;
//!         println!("{:?}", child.wait().await?);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! Who may run what, with whose approval, is decided before a command reaches this crate.

#[cfg(unix)]
mod check;
mod child;
#[cfg(target_os = "linux")]
mod clean_up;
mod clean_up_report;
#[cfg(target_os = "linux")]
mod codec;
mod command;
#[cfg(target_os = "linux")]
mod descriptors;
mod ended;
mod error;
#[cfg(target_os = "linux")]
mod inner;
mod launcher;
mod layers;
#[cfg(target_os = "linux")]
mod linux;
mod listeners;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod nowhere;
#[cfg(target_os = "linux")]
mod plan;
mod policy;
mod protected;
#[cfg(target_os = "linux")]
mod report;
mod running;
#[cfg(unix)]
mod scratch;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
mod service;
mod strength;
mod watch;

pub use child::Child;
pub use clean_up_report::CleanUpReport;
pub use command::{Command, Limits, NewFiles, Profile, Stdin};
pub use ended::{Ended, ExitKind, Stopped};
pub use error::LaunchError;
#[cfg(target_os = "linux")]
pub use inner::enter;
pub use launcher::{Helper, Launcher};
#[doc(hidden)]
pub use layers::{Layer, Layers};
pub use listeners::{FILES_PORT, Listeners, PROXY_PORT};
pub use policy::{Access, Network, Policy};
pub use protected::{GitEntries, Protection, protection_of_path};
pub use running::{add_unseen_report, unseen_reports, wait_for_clean_up};
pub use service::Service;
pub use strength::{Check, LimitsBy, SelfTest, Strength};
pub use watch::Watch;

/// Does the work of the inner helper, which there is on Linux alone. Never returns.
#[cfg(not(target_os = "linux"))]
pub fn enter(_arguments: impl Iterator<Item = std::ffi::OsString>) -> ! {
    eprintln!("lango: this system has no inner helper");
    std::process::exit(125)
}
