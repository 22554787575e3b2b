//! The files of one skill, opened below its folder's handle: nothing that lies elsewhere can be reached, whatever the
//! path or a link says, and nothing but regular files is opened.

use super::find::SKILL_FILE;
use super::{SkillCard, TOOL_PREFIX};
use crate::exec::page::{self, Page, Position};
use crate::kind::Kind;
use crate::show;
use cap_fs_ext::{DirExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, OpenOptions};
use lango_core::ToolError;
use std::ffi::OsStr;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

/// How many files are listed, and how deep they may lie.
const LISTED_FILES: usize = 200;
const LISTED_DEPTH: usize = 6;

/// A skill's folder as it is now.
pub(super) struct SkillFiles<'a> {
    card: &'a SkillCard,
    folder: Dir,
}

impl<'a> SkillFiles<'a> {
    /// Opens the folder again; it may have vanished, or be another one by now.
    pub(super) fn open(card: &'a SkillCard) -> Result<Self, ToolError> {
        let name = card.folder.file_name().unwrap_or_default();
        let opened = card.above.open_dir_nofollow(name);
        let folder = opened.map_err(|error| {
            let skill = &card.name;
            ToolError::new(match error.kind() {
                io::ErrorKind::NotFound => format!(
                    "the skill `{skill}` is not there any more: its folder was removed since lango started; do without"
                ),
                _ => format!("the folder of the skill `{skill}` cannot be opened any more: {error}"),
            })
        })?;
        Ok(Self { card, folder })
    }

    pub(super) fn card(&self) -> &SkillCard {
        self.card
    }

    /// The handle of the folder.
    pub(super) fn folder(&self) -> &Dir {
        &self.folder
    }

    /// The regular file of this path, and the path without links, both relative to the skill's folder.
    pub(super) fn open_file(&self, path: &Path) -> Result<(File, PathBuf), ToolError> {
        let explain = |error: io::Error| self.explain(path, &error);
        let before = self.folder.metadata(path).map_err(explain)?;
        self.expect_file(path, Kind::from(before.file_type()))?;
        let options = OpenOptions::new().read(true).nonblock(true).clone();
        let file = self.folder.open_with(path, &options).map_err(explain)?;
        // What was opened is looked at again: something else may have taken the name in between.
        let opened = file.metadata().map_err(explain)?;
        self.expect_file(path, Kind::from(opened.file_type()))?;
        let real = self.folder.canonicalize(path).map_err(explain)?;
        Ok((file, real))
    }

    /// A path as a model gives it: relative to the skill's folder, or absolute and inside it.
    pub(super) fn relative<'p>(&self, path: &'p str) -> &'p Path {
        let path = Path::new(path);
        path.strip_prefix(&self.card.folder).unwrap_or(path)
    }

    /// A page of a file of the skill, with a note if there is more.
    pub(super) fn read_page(&self, path: &str, first_line: u64) -> Result<String, ToolError> {
        let path = self.relative(path);
        let (file, _) = self.open_file(path)?;
        self.page(path, file, first_line)
    }

    /// A page of an open file.
    pub(super) fn page(&self, path: &Path, file: File, line: u64) -> Result<String, ToolError> {
        let start = Position {
            line,
            skip_bytes: 0,
        };
        let page = page::read(BufReader::new(file), start);
        let Page { bytes, next } = page.map_err(|error| self.explain(path, &error))?;
        let shown = show::name(path.as_os_str());
        let text = String::from_utf8(bytes)
            .ok()
            .filter(|text| !text.contains('\0'))
            .ok_or_else(|| {
                ToolError::new(format!(
                    "`{shown}` is not UTF-8 text, so it cannot be read here"
                ))
            })?;
        if text.is_empty() {
            return Ok(format!("[nothing in {shown} from line {line} on]\n"));
        }
        let mut text = text;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let tool = format!("{TOOL_PREFIX}{}", self.card.name);
        match next {
            Some(next) if next.line > line => text.push_str(&format!(
                "[there is more; read on with {tool} {}]\n",
                serde_json::json!({"file": path.to_string_lossy(), "first_line": next.line})
            )),
            Some(_) => text.push_str(&format!(
                "[line {line} goes on and is too long to be shown]\n"
            )),
            None => {}
        }
        Ok(text)
    }

    /// The files besides `SKILL.md`, one a line, sorted.
    pub(super) fn list(&self) -> String {
        let mut files = Vec::new();
        collect(&self.folder, Path::new(""), LISTED_DEPTH, &mut files);
        files.sort();
        let mut text: String = files
            .iter()
            .take(LISTED_FILES)
            .map(String::as_str)
            .collect();
        if files.len() > LISTED_FILES {
            text.push_str(&format!("[and more than {LISTED_FILES} in all]\n"));
        }
        text
    }

    fn expect_file(&self, path: &Path, kind: Kind) -> Result<(), ToolError> {
        let shown = show::name(path.as_os_str());
        match kind {
            Kind::File => Ok(()),
            kind => Err(ToolError::new(format!(
                "`{shown}` of the skill `{}` is a {kind}, not a file",
                self.card.name
            ))),
        }
    }

    fn explain(&self, path: &Path, error: &io::Error) -> ToolError {
        let shown = show::name(path.as_os_str());
        let skill = &self.card.name;
        ToolError::new(match error.kind() {
            io::ErrorKind::NotFound => format!(
                "the skill `{skill}` has no file `{shown}`, or none any more; call {TOOL_PREFIX}{skill} without \
                 arguments to see its files"
            ),
            // An escape is refused by cap-std itself, so no code of the operating system comes with it.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                format!(
                    "`{shown}` leads outside the folder of the skill `{skill}`; give a path inside it"
                )
            }
            _ => format!("`{shown}` of the skill `{skill}` cannot be opened: {error}"),
        })
    }
}

/// Adds a line for each file of a folder, and of those below. What cannot be looked at is left out.
fn collect(folder: &Dir, path: &Path, depth: usize, files: &mut Vec<String>) {
    let entries = folder.entries().into_iter().flatten().flatten();
    for entry in entries {
        if files.len() > LISTED_FILES {
            return;
        }
        let name = entry.file_name();
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let own = path.join(&name);
        match Kind::from(metadata.file_type()) {
            _ if name.as_encoded_bytes().starts_with(b".") => {}
            Kind::Folder if depth > 0 => {
                if let Ok(below) = folder.open_dir_nofollow(&name) {
                    collect(&below, &own, depth - 1, files);
                }
            }
            Kind::File if own.as_os_str() != OsStr::new(SKILL_FILE) => {
                let size = show::size(metadata.len());
                files.push(format!("{}  {size}\n", show::name(own.as_os_str())));
            }
            _ => {}
        }
    }
}
