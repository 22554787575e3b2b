//! Finds skills in the subfolders of the given folders and reads the front matter of each.

use super::front_matter::FrontMatter;
use super::{BrokenSkill, SkillCard, SkillFolder, SkillOwner, Skills, TOOL_PREFIX};
use crate::entry_kind::EntryKind;
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};
use lango_core::Trust;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of skills in total, and of entries that are read in one folder.
const MAX_SKILLS: usize = 256;
const MAX_ENTRIES: usize = 4096;

/// Maximum number of bytes that all skills of a project may add to each model request. A user who cloned a project did
/// not ask for its skills, but pays for them.
const MAX_PROJECT_BYTES: usize = 16 * 1024;

/// The file that makes a folder a skill, and its maximum size.
pub(super) const SKILL_FILE: &str = "SKILL.md";
pub(super) const MAX_SKILL_FILE_BYTES: u64 = 1024 * 1024;

/// Maximum length of a tool name that model providers accept.
const MAX_TOOL_NAME: usize = 64;

impl Skills {
    /// Finds the skills in these folders. A broken skill does not affect the others. If two skills have the same name,
    /// the user's skill takes precedence over the project's; otherwise the skill in the earlier folder does.
    ///
    /// Reads files, so it blocks for a moment.
    pub fn find(folders: &[SkillFolder]) -> Self {
        let mut by_rank: Vec<_> = folders.iter().collect();
        by_rank.sort_by_key(|folder| folder.owner);
        let mut search = SkillSearch::default();
        for folder in by_rank {
            search.search_folder(folder);
        }
        search.broken.sort_by(|a, b| a.path.cmp(&b.path));
        Self {
            good: search.good.into_values().collect(),
            broken: search.broken,
        }
    }
}

#[derive(Default)]
struct SkillSearch {
    good: BTreeMap<String, SkillCard>,
    broken: Vec<BrokenSkill>,
    /// Number of bytes that the project's skills add to a request so far.
    project_bytes: usize,
}

impl SkillSearch {
    fn search_folder(&mut self, folder: &SkillFolder) {
        let opened = open_folder(folder).and_then(|parent| {
            let entries = sorted_names(&parent.handle)?;
            Ok((parent, entries))
        });
        let (parent, mut entries) = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                let problem = format!("the skills folder cannot be read: {error}");
                return self.report(&folder.path, problem);
            }
        };
        if entries.len() > MAX_ENTRIES {
            let problem = format!("only {MAX_ENTRIES} entries of the folder were read");
            self.report(&folder.path, problem);
            entries.truncate(MAX_ENTRIES);
        }
        for name in entries {
            let path = parent.path.join(&name);
            match read_card(&parent, &name, folder.owner) {
                Ok(Some(card)) => self.add(card),
                Ok(None) => {}
                Err(problem) => self.report(&path, problem),
            }
        }
    }

    fn add(&mut self, card: SkillCard) {
        if let Some(other) = self.good.get(&card.name) {
            let problem = format!(
                "another skill has the same name and is used instead: `{}`",
                other.folder.display()
            );
            return self.report(&card.folder, problem);
        }
        if self.good.len() == MAX_SKILLS {
            let problem = format!("there are already {MAX_SKILLS} skills; remove some");
            return self.report(&card.folder, problem);
        }
        if card.owner == SkillOwner::Project {
            let bytes = self.project_bytes + card.request_bytes();
            if bytes > MAX_PROJECT_BYTES {
                let problem = format!(
                    "left out: a project's skills may add at most {} KiB to a request; shorten or remove some, or add their folder to skill.dirs in your own configuration",
                    MAX_PROJECT_BYTES / 1024
                );
                return self.report(&card.folder, problem);
            }
            self.project_bytes = bytes;
        }
        self.good.insert(card.name.clone(), card);
    }

    fn report(&mut self, path: &Path, problem: String) {
        self.broken.push(BrokenSkill {
            path: path.to_owned(),
            problem,
        });
    }
}

/// A folder that contains skills.
struct ParentFolder {
    handle: Arc<Dir>,
    path: PathBuf,
}

impl ParentFolder {
    fn open(path: PathBuf) -> io::Result<Self> {
        let handle = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self {
            handle: Arc::new(handle),
            path,
        })
    }
}

fn open_folder(folder: &SkillFolder) -> io::Result<ParentFolder> {
    let path = folder.path.canonicalize()?;
    // Anyone may have put files into a workspace, including a link to a folder of the user.
    if folder.owner == SkillOwner::Project && path != folder.path {
        return Err(io::Error::other("its path contains a link"));
    }
    ParentFolder::open(path)
}

/// Returns the sorted names in a folder; one more than the limit if there are too many.
fn sorted_names(folder: &Dir) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in folder.entries()?.take(MAX_ENTRIES + 1) {
        names.push(entry?.file_name());
    }
    names.sort();
    Ok(names)
}

/// Reads the skill with this name; `None` if it is not a folder, such as a README next to skills.
fn read_card(
    parent: &ParentFolder,
    name: &OsStr,
    owner: SkillOwner,
) -> Result<Option<SkillCard>, String> {
    if name.as_encoded_bytes().starts_with(b".") {
        return Ok(None);
    }
    let metadata = parent.handle.symlink_metadata(name);
    let metadata = metadata.map_err(|error| format!("it cannot be read: {error}"))?;
    let linked;
    let (parent, own_name) = match (EntryKind::from(metadata.file_type()), owner) {
        (EntryKind::Folder, _) => (parent, name),
        (EntryKind::Link, SkillOwner::User) => match linked_folder(&parent.path.join(name))? {
            Some(target) => {
                linked = target;
                (&linked.0, linked.1.as_os_str())
            }
            None => return Ok(None),
        },
        (EntryKind::Link, SkillOwner::Project) => {
            return Err("it is a link; a project's skill must be a real folder".into());
        }
        _ => return Ok(None),
    };
    let name = name
        .to_str()
        .ok_or("the folder's name is not UTF-8 text; rename it")?;
    let handle = parent.handle.open_dir_nofollow(own_name);
    let handle = handle.map_err(|error| format!("it cannot be opened: {error}"))?;
    let front_matter = read_front_matter(&handle)?;
    check_tool_name(&front_matter.name, name)?;
    Ok(Some(SkillCard {
        name: front_matter.name,
        description: front_matter.description,
        folder: parent.path.join(own_name),
        parent: Arc::clone(&parent.handle),
        owner,
        trust: match owner {
            SkillOwner::User => front_matter.trust,
            SkillOwner::Project => Trust::Untrusted,
        },
    }))
}

/// Resolves a link in a folder of the user. Returns the parent of the skill's real folder, and the folder's name in it.
fn linked_folder(link: &Path) -> Result<Option<(ParentFolder, OsString)>, String> {
    let explain = |error: io::Error| format!("the link cannot be followed: {error}");
    let target = link.canonicalize().map_err(explain)?;
    if !target.is_dir() {
        return Ok(None);
    }
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err("it is a link to the root folder".into());
    };
    let parent = ParentFolder::open(parent.to_owned()).map_err(explain)?;
    Ok(Some((parent, name.to_owned())))
}

/// Checks that a skill named `name`, in a folder named `folder`, can become a tool.
pub(super) fn check_tool_name(name: &str, folder: &str) -> Result<(), String> {
    if name != folder {
        return Err(format!(
            "its name is `{name}` but its folder is named `{folder}`; make them the same"
        ));
    }
    let longest = MAX_TOOL_NAME - TOOL_PREFIX.len();
    if name.len() > longest {
        return Err(format!(
            "its name is too long for a tool: it may have at most {longest} characters"
        ));
    }
    Ok(())
}

fn read_front_matter(folder: &Dir) -> Result<FrontMatter, String> {
    let (file, _) = open_skill_file(folder)?;
    let mut start = Vec::new();
    // Read a little more than the maximum, to detect front matter that is too long.
    file.take(lango_frontmatter::MAX_BYTES as u64 + 16)
        .read_to_end(&mut start)
        .map_err(|error| format!("`{SKILL_FILE}` cannot be read: {error}"))?;
    // Only the part up to the closing mark has to be text here. The body is checked when it is read, and the last
    // character may be incomplete.
    let text = match std::str::from_utf8(&start) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
    };
    let whole = text.len() == start.len() || start.len() > lango_frontmatter::MAX_BYTES;
    FrontMatter::read(text).map_err(|problem| {
        if whole {
            format!("`{SKILL_FILE}`: {problem}")
        } else {
            format!("`{SKILL_FILE}` is not UTF-8 text")
        }
    })
}

/// Opens the `SKILL.md` in a skill's folder and returns it with its size. Fails if it is not a regular file or too
/// large.
pub(super) fn open_skill_file(folder: &Dir) -> Result<(File, u64), String> {
    let explain = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("it has no `{SKILL_FILE}`"),
        _ => format!("`{SKILL_FILE}` cannot be opened: {error}"),
    };
    let metadata = folder.symlink_metadata(SKILL_FILE).map_err(explain)?;
    expect_file(EntryKind::from(metadata.file_type()))?;
    let options = OpenOptions::new()
        .read(true)
        .nonblock(true)
        .follow(FollowSymlinks::No)
        .clone();
    let file = folder.open_with(SKILL_FILE, &options).map_err(explain)?;
    // Check the opened file again: another process may have replaced the entry in between.
    let metadata = file.metadata().map_err(explain)?;
    expect_file(EntryKind::from(metadata.file_type()))?;
    match metadata.len() {
        0 => Err(format!("`{SKILL_FILE}` is empty")),
        size if size > MAX_SKILL_FILE_BYTES => Err(format!(
            "`{SKILL_FILE}` is larger than {} MiB; move parts of it to `references/`",
            MAX_SKILL_FILE_BYTES / (1024 * 1024)
        )),
        size => Ok((file, size)),
    }
}

fn expect_file(kind: EntryKind) -> Result<(), String> {
    match kind {
        EntryKind::File => Ok(()),
        kind => Err(format!("`{SKILL_FILE}` is a {kind}, not a file")),
    }
}
