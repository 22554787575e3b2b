//! Skills: folders with a `SKILL.md` that tell a model how to do something, in the format of Agent Skills.
//!
//! At the start only the front matter of each is read; the body, the files beside it and the scripts are looked at when
//! the skill is used, each time anew. A skill that is broken is told and left out. Where a skill is, is kept as a handle
//! to the folder above it, so that a link put in its place later does not lead elsewhere.

mod content;
mod create;
mod files;
mod find;
mod front_matter;
mod library;
mod script;
mod tool;

pub use library::skill_library_tools;

use cap_std::fs::Dir;
use lango_core::Trust;
use std::path::PathBuf;
use std::sync::Arc;

/// What comes before a skill's name in its tool's name.
const TOOL_PREFIX: &str = "skill_";

/// A folder whose subfolders are skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    /// The folder; it need not be there. A project's one is absolute and free of links, or it is left out.
    pub path: PathBuf,
    /// Whose skills it holds.
    pub whose: Whose,
}

/// Who wrote a skill, or took it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// The person who runs lango.
    User,
    /// Whoever wrote what is in the workspace.
    Project,
}

/// A skill that can be used.
#[derive(Debug, Clone)]
pub struct SkillCard {
    /// The name, which is also that of its folder.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Its folder, without links.
    pub folder: PathBuf,
    /// Whose it is.
    pub whose: Whose,
    /// The trust label of its description: trusted only if it is the user's, and was not written by an agent with an
    /// untrusted context.
    pub trust: Trust,
    /// The folder above.
    above: Arc<Dir>,
}

/// A skill that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenSkill {
    /// The folder or file that is at fault.
    pub path: PathBuf,
    /// What is wrong, for whoever can mend it.
    pub problem: String,
}

/// The skills that were found, sorted by name, and those that were not taken, sorted by path.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    /// Those that can be used.
    pub good: Vec<SkillCard>,
    /// Those that cannot.
    pub broken: Vec<BrokenSkill>,
}
