//! The files of one skill. They are opened below the handle of the skill's folder, so no path or link can lead outside,
//! and only regular files are opened.

use super::find::SKILL_FILE;
use super::{SkillCard, TOOL_PREFIX};
use crate::entry_kind::EntryKind;
use crate::exec::page::{self, Page, Position};
use crate::show;
use cap_fs_ext::{DirExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, OpenOptions};
use lango_core::ToolError;
use std::ffi::OsStr;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

/// Maximum number of files in the list, and maximum depth of their folders.
const LISTED_FILES: usize = 200;
const LISTED_DEPTH: usize = 6;

/// The open folder of a skill.
pub(super) struct SkillFiles<'a> {
    card: &'a SkillCard,
    folder: Dir,
}

impl<'a> SkillFiles<'a> {
    /// Opens the folder, which may have been removed or replaced since the skill was found.
    pub(super) fn open(card: &'a SkillCard) -> Result<Self, ToolError> {
        let name = card.folder.file_name().unwrap_or_default();
        let opened = card.parent.open_dir_nofollow(name);
        let folder = opened.map_err(|error| {
            let skill = &card.name;
            ToolError::new(match error.kind() {
                io::ErrorKind::NotFound => format!(
                    "the skill `{skill}` no longer exists: its folder was removed after lango started; continue without it"
                ),
                _ => format!("the folder of the skill `{skill}` can no longer be opened: {error}"),
            })
        })?;
        Ok(Self { card, folder })
    }

    pub(super) fn card(&self) -> &SkillCard {
        self.card
    }

    pub(super) fn folder(&self) -> &Dir {
        &self.folder
    }

    /// Opens a regular file, and returns it together with its path after links are resolved. Both paths are relative to
    /// the skill's folder.
    pub(super) fn open_file(&self, path: &Path) -> Result<(File, PathBuf), ToolError> {
        let explain = |error: io::Error| self.explain(path, &error);
        let before = self.folder.metadata(path).map_err(explain)?;
        self.expect_file(path, EntryKind::from(before.file_type()))?;
        let options = OpenOptions::new().read(true).nonblock(true).clone();
        let file = self.folder.open_with(path, &options).map_err(explain)?;
        // Check the opened file again: another process may have replaced the entry in between.
        let opened = file.metadata().map_err(explain)?;
        self.expect_file(path, EntryKind::from(opened.file_type()))?;
        let real = self.folder.canonicalize(path).map_err(explain)?;
        Ok((file, real))
    }

    /// Makes a path from a model relative to the skill's folder. The path may be absolute if it lies inside the folder.
    pub(super) fn relative<'p>(&self, path: &'p str) -> &'p Path {
        let path = Path::new(path);
        path.strip_prefix(&self.card.folder).unwrap_or(path)
    }

    /// Reads a page of a file, with a note if there is more.
    pub(super) fn read_page(&self, path: &str, first_line: u64) -> Result<String, ToolError> {
        let path = self.relative(path);
        let (file, _) = self.open_file(path)?;
        self.page(path, file, first_line)
    }

    /// Reads a page of an open file.
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
                    "`{shown}` is not UTF-8 text, so it cannot be read with this tool"
                ))
            })?;
        if text.is_empty() {
            return Ok(format!("[{shown} has no text from line {line} on]\n"));
        }
        let mut text = text;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let tool = format!("{TOOL_PREFIX}{}", self.card.name);
        match next {
            Some(next) if next.line > line => text.push_str(&format!(
                "[there is more; continue with {tool} {}]\n",
                serde_json::json!({"file": path.to_string_lossy(), "first_line": next.line})
            )),
            Some(_) => text.push_str(&format!("[line {line} is too long to be shown whole]\n")),
            None => {}
        }
        Ok(text)
    }

    /// Lists the files besides `SKILL.md`, sorted, one per line.
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
            text.push_str(&format!(
                "[more than {LISTED_FILES} files; the rest is not listed]\n"
            ));
        }
        text
    }

    fn expect_file(&self, path: &Path, kind: EntryKind) -> Result<(), ToolError> {
        let shown = show::name(path.as_os_str());
        match kind {
            EntryKind::File => Ok(()),
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
                "the skill `{skill}` has no file `{shown}`; call {TOOL_PREFIX}{skill} without arguments to see its files"
            ),
            // cap-std itself refuses a path that leads outside, so the error has no code of the operating system.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                format!(
                    "`{shown}` is outside the folder of the skill `{skill}`; pass a path inside it"
                )
            }
            _ => format!("`{shown}` of the skill `{skill}` cannot be opened: {error}"),
        })
    }
}

/// Adds a line for each file below a folder. Skips files that cannot be read.
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
        match EntryKind::from(metadata.file_type()) {
            _ if name.as_encoded_bytes().starts_with(b".") => {}
            EntryKind::Folder if depth > 0 => {
                if let Ok(below) = folder.open_dir_nofollow(&name) {
                    collect(&below, &own, depth - 1, files);
                }
            }
            EntryKind::File if own.as_os_str() != OsStr::new(SKILL_FILE) => {
                let size = show::size(metadata.len());
                files.push(format!("{}  {size}\n", show::name(own.as_os_str())));
            }
            _ => {}
        }
    }
}
