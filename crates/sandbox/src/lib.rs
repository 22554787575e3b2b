//! Runs untrusted commands in a sandbox, under a policy that says what they may touch.
//!
//! On Linux two layers confine a command. The outer layer is bubblewrap: it gives the command separate namespaces and a
//! file system that contains only what the [`Policy`] opens. The inner layer is the kernel's Landlock and seccomp,
//! which still hold if the outer layer fails. A guard process enforces the [`ResourceLimits`], and kills all processes
//! of the command when its first process ends, when [`Child`] is dropped, or when lango is killed. If a layer cannot be
//! set up, nothing runs.
//!
//! ```no_run
//! use lango_sandbox::{Command, HelperCommand, Launcher, Policy, SandboxStrength};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut arguments = std::env::args_os().skip(1);
//!     if arguments.next().is_some_and(|first| first == "__sandbox") {
//!         lango_sandbox::enter(arguments);
//!     }
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//!     runtime.block_on(async {
//!         let program = std::env::current_exe()?;
//!         let launcher = Launcher::new(HelperCommand { program, arguments: vec!["__sandbox".into()] });
//!         assert_eq!(launcher.self_test().await.strength, SandboxStrength::Full);
//!         let policy = Policy::of("/home/ada/work".into());
//!         let mut child = launcher.spawn(&policy, Command::new(["ls"], "/home/ada/work".into()))?;
//!         println!("{:?}", child.wait().await?);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! Who may run which command, and with whose approval, is decided before a command reaches this crate.

mod child;
#[cfg(target_os = "linux")]
mod clean_up;
mod clean_up_report;
#[cfg(target_os = "linux")]
mod codec;
mod command;
#[cfg(target_os = "linux")]
mod descriptors;
mod error;
mod executed;
#[cfg(target_os = "linux")]
mod inner;
mod launcher;
mod layers;
#[cfg(target_os = "linux")]
mod linux;
mod listeners;
#[cfg(target_os = "macos")]
mod macos;
mod name_list;
mod outcome;
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
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod unsupported;
#[cfg(unix)]
mod validate;
mod watch;

pub use child::Child;
pub use clean_up_report::CleanUpReport;
pub use command::{Command, NewFiles, ResourceLimits, SandboxProfile, Stdin};
pub use error::LaunchError;
pub use executed::{executed_by, executed_in};
#[cfg(target_os = "linux")]
pub use inner::enter;
pub use launcher::{HelperCommand, Launcher};
#[doc(hidden)]
pub use layers::{Layer, Layers};
pub use listeners::{FILES_PORT, Listeners, PROXY_PORT};
pub use outcome::{CommandOutcome, ExceededLimit, ExitKind};
pub use policy::{Access, Network, Policy};
pub use protected::{GitEntries, Protection, protection_of_path};
pub use running::{add_unseen_report, take_unseen_reports, wait_for_clean_up};
pub use service::SandboxedService;
pub use strength::{LimitEnforcement, SandboxStrength, SelfTest, SelfTestCheck};
pub use watch::CleanUpWatch;

/// Runs the inner helper, which exists only on Linux. Never returns.
#[cfg(not(target_os = "linux"))]
pub fn enter(_arguments: impl Iterator<Item = std::ffi::OsString>) -> ! {
    eprintln!("lango: this system has no inner helper");
    std::process::exit(125)
}
