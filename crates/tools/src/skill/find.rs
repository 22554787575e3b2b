//! Finding skills: the subfolders of the given folders, and the front matter of each.

use super::front_matter::FrontMatter;
use super::{BrokenSkill, SkillCard, SkillFolder, Skills, TOOL_PREFIX, Whose};
use crate::kind::Kind;
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};
use lango_core::Trust;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many skills are taken in all, and how many entries of a folder are looked at.
const MOST_SKILLS: usize = 256;
const MOST_ENTRIES: usize = 4096;

/// How many bytes of each request to a model the skills of a project may take together. Whoever cloned a project did not
/// ask for them, and pays for each.
const MOST_PROJECT_BYTES: usize = 16 * 1024;

/// The file that makes a folder a skill, and the most bytes it has.
pub(super) const SKILL_FILE: &str = "SKILL.md";
pub(super) const LARGEST_SKILL_FILE: u64 = 1024 * 1024;

/// How long a tool's name may be for a model.
const LONGEST_TOOL_NAME: usize = 64;

impl Skills {
    /// Finds the skills in these folders. Nothing that is wrong with one of them keeps the others away. Of two skills
    /// with one name, the user's is taken before the project's and else the one of the earlier folder.
    ///
    /// Reads files and so blocks its thread for a moment.
    pub fn find(folders: &[SkillFolder]) -> Self {
        let mut by_rank: Vec<_> = folders.iter().collect();
        by_rank.sort_by_key(|folder| folder.whose);
        let mut finding = Finding::default();
        for folder in by_rank {
            finding.look_into(folder);
        }
        finding.broken.sort_by(|a, b| a.path.cmp(&b.path));
        Self {
            good: finding.good.into_values().collect(),
            broken: finding.broken,
        }
    }
}

#[derive(Default)]
struct Finding {
    good: BTreeMap<String, SkillCard>,
    broken: Vec<BrokenSkill>,
    /// What the skills of the project take of a request so far.
    project_bytes: usize,
}

impl Finding {
    fn look_into(&mut self, folder: &SkillFolder) {
        let opened = open_folder(folder).and_then(|above| {
            let entries = entries_of(&above.handle)?;
            Ok((above, entries))
        });
        let (above, mut entries) = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                let problem = format!("the folder of skills cannot be read: {error}");
                return self.report(&folder.path, problem);
            }
        };
        if entries.len() > MOST_ENTRIES {
            let problem = format!("only {MOST_ENTRIES} entries of the folder were looked at");
            self.report(&folder.path, problem);
            entries.truncate(MOST_ENTRIES);
        }
        for name in entries {
            let path = above.path.join(&name);
            match card(&above, &name, folder.whose) {
                Ok(Some(card)) => self.take(card),
                Ok(None) => {}
                Err(problem) => self.report(&path, problem),
            }
        }
    }

    fn take(&mut self, card: SkillCard) {
        if let Some(other) = self.good.get(&card.name) {
            let problem = format!(
                "there is another skill of this name, which is used instead: `{}`",
                other.folder.display()
            );
            return self.report(&card.folder, problem);
        }
        if self.good.len() == MOST_SKILLS {
            let problem = format!("there are {MOST_SKILLS} skills already; remove some");
            return self.report(&card.folder, problem);
        }
        if card.whose == Whose::Project {
            let bytes = self.project_bytes + card.request_bytes();
            if bytes > MOST_PROJECT_BYTES {
                let problem = format!(
                    "it is left out: a project's skills may take {} KiB of a request together; shorten or remove some, or name their folder in skill.dirs of your own file",
                    MOST_PROJECT_BYTES / 1024
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

/// A folder with skills in it.
struct Above {
    handle: Arc<Dir>,
    path: PathBuf,
}

impl Above {
    fn open(path: PathBuf) -> io::Result<Self> {
        let handle = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self {
            handle: Arc::new(handle),
            path,
        })
    }
}

fn open_folder(folder: &SkillFolder) -> io::Result<Above> {
    let path = folder.path.canonicalize()?;
    // What is in a workspace may have been put there by anyone, a link to a folder of the person's included.
    if folder.whose == Whose::Project && path != folder.path {
        return Err(io::Error::other("a link leads to it"));
    }
    Above::open(path)
}

/// The names in a folder in their order, one more than are looked at if there are too many.
fn entries_of(folder: &Dir) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in folder.entries()?.take(MOST_ENTRIES + 1) {
        names.push(entry?.file_name());
    }
    names.sort();
    Ok(names)
}

/// The skill of this name; nothing if it is not a folder, as a README beside skills is not.
fn card(above: &Above, name: &OsStr, whose: Whose) -> Result<Option<SkillCard>, String> {
    if name.as_encoded_bytes().starts_with(b".") {
        return Ok(None);
    }
    let metadata = above.handle.symlink_metadata(name);
    let metadata = metadata.map_err(|error| format!("it cannot be looked at: {error}"))?;
    let linked;
    let (above, own_name) = match (Kind::from(metadata.file_type()), whose) {
        (Kind::Folder, _) => (above, name),
        (Kind::Link, Whose::User) => match linked_folder(&above.path.join(name))? {
            Some(target) => {
                linked = target;
                (&linked.0, linked.1.as_os_str())
            }
            None => return Ok(None),
        },
        (Kind::Link, Whose::Project) => {
            return Err("it is a link; a project's skill must be a folder of its own".into());
        }
        _ => return Ok(None),
    };
    let name = name
        .to_str()
        .ok_or("the folder's name is not UTF-8 text; rename it")?;
    let handle = above.handle.open_dir_nofollow(own_name);
    let handle = handle.map_err(|error| format!("it cannot be opened: {error}"))?;
    let front_matter = read_front_matter(&handle)?;
    check_place(&front_matter.name, name)?;
    Ok(Some(SkillCard {
        name: front_matter.name,
        description: front_matter.description,
        folder: above.path.join(own_name),
        above: Arc::clone(&above.handle),
        whose,
        trust: match whose {
            Whose::User => front_matter.trust,
            Whose::Project => Trust::Untrusted,
        },
    }))
}

/// Where a link of the user's leads: the folder that holds the skill's own one, and the name it has there.
fn linked_folder(link: &Path) -> Result<Option<(Above, OsString)>, String> {
    let explain = |error: io::Error| format!("the link cannot be followed: {error}");
    let target = link.canonicalize().map_err(explain)?;
    if !target.is_dir() {
        return Ok(None);
    }
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err("it is a link to the root folder".into());
    };
    let above = Above::open(parent.to_owned()).map_err(explain)?;
    Ok(Some((above, name.to_owned())))
}

/// Whether a skill of this name, in a folder of that one, can become a tool.
pub(super) fn check_place(name: &str, folder: &str) -> Result<(), String> {
    if name != folder {
        return Err(format!(
            "its name is `{name}` and its folder's is `{folder}`; make them the same"
        ));
    }
    let longest = LONGEST_TOOL_NAME - TOOL_PREFIX.len();
    if name.len() > longest {
        return Err(format!(
            "its name is too long for a tool: lango takes up to {longest} characters"
        ));
    }
    Ok(())
}

fn read_front_matter(folder: &Dir) -> Result<FrontMatter, String> {
    let (file, _) = open_skill_file(folder)?;
    let mut start = Vec::new();
    // A little more than the front matter, so that one that is too long is seen to be so.
    file.take(lango_frontmatter::LARGEST as u64 + 16)
        .read_to_end(&mut start)
        .map_err(|error| format!("`{SKILL_FILE}` cannot be read: {error}"))?;
    // Only what comes up to the closing mark has to be text here: the body is looked at when it is read, and the last
    // character may be cut.
    let text = match std::str::from_utf8(&start) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
    };
    let whole = text.len() == start.len() || start.len() > lango_frontmatter::LARGEST;
    FrontMatter::read(text).map_err(|problem| match whole {
        true => format!("`{SKILL_FILE}`: {problem}"),
        false => format!("`{SKILL_FILE}` is not UTF-8 text"),
    })
}

/// Opens the `SKILL.md` of a skill's folder, if it is a regular file and not too large; says how many bytes it has.
pub(super) fn open_skill_file(folder: &Dir) -> Result<(File, u64), String> {
    let explain = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("it has no `{SKILL_FILE}`"),
        _ => format!("`{SKILL_FILE}` cannot be opened: {error}"),
    };
    let metadata = folder.symlink_metadata(SKILL_FILE).map_err(explain)?;
    expect_file(Kind::from(metadata.file_type()))?;
    let options = OpenOptions::new()
        .read(true)
        .nonblock(true)
        .follow(FollowSymlinks::No)
        .clone();
    let file = folder.open_with(SKILL_FILE, &options).map_err(explain)?;
    // What was opened is looked at again: something else may have taken the name in between.
    let metadata = file.metadata().map_err(explain)?;
    expect_file(Kind::from(metadata.file_type()))?;
    match metadata.len() {
        0 => Err(format!("`{SKILL_FILE}` is empty")),
        size if size > LARGEST_SKILL_FILE => Err(format!(
            "`{SKILL_FILE}` is larger than {} MiB; move parts of it to `references/`",
            LARGEST_SKILL_FILE / (1024 * 1024)
        )),
        size => Ok((file, size)),
    }
}

fn expect_file(kind: Kind) -> Result<(), String> {
    match kind {
        Kind::File => Ok(()),
        kind => Err(format!("`{SKILL_FILE}` is a {kind}, not a file")),
    }
}
