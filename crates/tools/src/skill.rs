//! Skills: folders with a `SKILL.md` that tell a model how to do something, in the Agent Skills format.
//!
//! At startup only the front matter of each skill is read. The body, the other files and the scripts are read whenever
//! the skill is used. Broken skills are reported and left out. A skill's location is an open handle to its parent
//! folder, so it has no effect if a folder on the path is later replaced by a link.

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

/// Prefix of a skill's tool name.
const TOOL_PREFIX: &str = "skill_";

/// A folder whose subfolders are skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    /// The folder, which need not exist. The path of a project's folder must be absolute and free of links; otherwise
    /// the folder is reported as broken.
    pub path: PathBuf,
    pub owner: SkillOwner,
}

/// Who is responsible for a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillOwner {
    /// The user who runs lango.
    User,
    /// The authors of the files in the workspace, who are not trusted.
    Project,
}

/// A usable skill.
#[derive(Debug, Clone)]
pub struct SkillCard {
    /// The name, which is also the name of the folder.
    pub name: String,
    /// What the skill does and when to use it.
    pub description: String,
    /// The folder, without links.
    pub folder: PathBuf,
    pub owner: SkillOwner,
    /// The trust label of the description. Trusted only if the skill belongs to the user and was not written by an
    /// agent with an untrusted context.
    pub trust: Trust,
    /// The parent folder.
    parent: Arc<Dir>,
}

/// A skill that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenSkill {
    /// The broken folder or file.
    pub path: PathBuf,
    /// What is wrong, for the person who can fix it.
    pub problem: String,
}

/// The usable skills, sorted by name, and the broken ones, sorted by path.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    pub good: Vec<SkillCard>,
    pub broken: Vec<BrokenSkill>,
}
