//! The built-in tools.
//!
//! Each tool is a value behind [`lango_core::Tool`] that carries its specification and its code. The file tools reach
//! only what the policy of their [`Workspace`] opens. They resolve every path from the open handles of those folders,
//! one name at a time, and check each name against the policy. So `..`, absolute paths and symbolic links cannot lead
//! outside, even if another process swaps a link in while the path is resolved. Deleted files go to a [`Trash`]. An [`UndoStore`]
//! has the originals of changed files, so that the changes of a turn can be undone.
//!
//! ```
//! # fn main() -> Result<(), lango_tools::WorkspaceError> {
//! use lango_sandbox::Policy;
//! use lango_tools::{Trash, UndoStore, Workspace, file_tools};
//!
//! let workspace = Workspace::open(Policy::of(".".into()))?;
//! let trash = Trash::at("/var/lib/lango/trash");
//! let undo = UndoStore::at("/var/lib/lango/undo");
//! let tools = file_tools(&workspace, &trash, Some(&undo));
//! let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.to_string()).collect();
//! assert_eq!(names[..4], ["fs_list", "fs_read", "fs_stat", "fs_write"]);
//! assert_eq!(names[4..], ["fs_edit", "fs_mkdir", "fs_delete", "fs_search"]);
//! # Ok(())
//! # }
//! ```
//!
//! [`command_tools`] run programs, each in the sandbox. [`Skills`] turns every skill it finds into a tool and runs
//! skill scripts in the sandbox too. One policy limits what both can touch. [`skill_library_tools`] list skills and
//! create new ones.
//!
//! Who may call a tool, with which approval and for how long is decided before a call reaches this crate.

mod attributes;
mod change;
mod declaration;
mod diff;
mod entry_kind;
mod exec;
mod file_error;
mod folder;
mod fs;
mod guard;
mod replace;
mod requested_path;
mod resolve;
mod roots;
mod show;
mod skill;
mod target_path;
mod trash;
mod tree;
mod undo;
mod workspace;

pub use exec::{CommandLimits, CommandProxy, CommandSetup, Commands, command_tools};
pub use fs::file_tools;
pub use skill::{BrokenSkill, SkillCard, SkillFolder, SkillOwner, Skills, skill_library_tools};
pub use trash::{Trash, TrashError, TrashItem};
pub use undo::{
    FileChange, FileDifference, RecordedTurn, TurnRecord, UNDOABLE_TOOLS, UndoAction, UndoError,
    UndoLimits, UndoMode, UndoOutcome, UndoResult, UndoStep, UndoStore, differences,
};
pub use workspace::{Workspace, WorkspaceEntry, WorkspaceError};
