//! The built-in tools.
//!
//! Each one is a value that carries its specification and its code behind [`lango_core::Tool`]. The file tools reach
//! nothing but the [`Workspace`] they are made for: every path is opened relative to that folder's handle, so that
//! neither `..`, an absolute path nor a symbolic link leads out, not even one that is swapped in meanwhile.
//!
//! ```
//! # fn main() -> Result<(), lango_tools::WorkspaceError> {
//! let workspace = lango_tools::Workspace::open(".")?;
//! let names: Vec<_> =
//!     lango_tools::file_tools(&workspace).iter().map(|tool| tool.spec().name.to_string()).collect();
//! assert_eq!(names, ["fs_list", "fs_read", "fs_stat"]);
//! # Ok(())
//! # }
//! ```
//!
//! [`command_tools`] run programs, each in the sandbox, and [`Skills`] makes a tool of each skill it finds; their scripts
//! are run the same way. What both may touch is said by one policy.
//!
//! Who may call a tool, with which approval and for how long is decided before the call reaches this crate.

mod declaration;
mod exec;
mod file_error;
mod fs;
mod kind;
mod place;
mod show;
mod skill;
mod workspace;

pub use exec::{CommandLimits, CommandSetup, Commands, CommandsError, command_tools};
pub use fs::file_tools;
pub use skill::{BrokenSkill, SkillCard, SkillFolder, Skills, Whose};
pub use workspace::{Workspace, WorkspaceError};
