//! The built-in tools.
//!
//! Each one is a value that carries its specification and its code behind [`lango_core::Tool`]. The file tools reach
//! what the policy of their [`Workspace`] opens, and nothing else: every path is followed from those folders' handles,
//! one name at a time and each held against the policy, so that neither `..`, an absolute path nor a symbolic link
//! leads out, not even one that is swapped in meanwhile. What they delete goes to a [`Trash`].
//!
//! ```
//! # fn main() -> Result<(), lango_tools::WorkspaceError> {
//! use lango_sandbox::Policy;
//! use lango_tools::{Trash, Workspace, file_tools};
//!
//! let workspace = Workspace::open(Policy::of(".".into()))?;
//! let trash = Trash::at("/var/lib/lango/trash");
//! let tools = file_tools(&workspace, &trash);
//! let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.to_string()).collect();
//! assert_eq!(names[..4], ["fs_list", "fs_read", "fs_stat", "fs_write"]);
//! assert_eq!(names[4..], ["fs_edit", "fs_mkdir", "fs_delete", "fs_search"]);
//! # Ok(())
//! # }
//! ```
//!
//! [`command_tools`] run programs, each in the sandbox, and [`Skills`] makes a tool of each skill it finds; their scripts
//! are run the same way. What both may touch is said by one policy. [`skill_library_tools`] list skills and write new
//! ones.
//!
//! Who may call a tool, with which approval and for how long is decided before the call reaches this crate.

mod declaration;
mod diff;
mod exec;
mod file_error;
mod folder;
mod fs;
mod guard;
mod kind;
mod place;
mod replace;
mod roots;
mod show;
mod skill;
mod spot;
mod trash;
mod tree;
mod walk;
mod workspace;

pub use exec::{CommandLimits, CommandProxy, CommandSetup, Commands, command_tools};
pub use fs::file_tools;
pub use skill::{BrokenSkill, SkillCard, SkillFolder, Skills, Whose, skill_library_tools};
pub use trash::{Trash, TrashError, Trashed};
pub use workspace::{Workspace, WorkspaceEntry, WorkspaceError};
