//! `fs_list`: lists the entries of a folder, one per line, folders first.
//!
//! All entries are counted, but only those to be shown are kept in memory, and only their metadata is read. So listing
//! a folder of a million files costs no more than reading its names.

use super::{ReadFunctions, call_text, read_only_tool};
use crate::Workspace;
use crate::entry_kind::EntryKind;
use crate::file_error::FileError;
use crate::folder::Folder;
use crate::show;
use crate::target_path::TargetPath;
use cap_std::fs::{Dir, DirEntry};
use lango_core::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::sync::Arc;

/// Maximum number of entries that one call shows.
const SHOWN_ENTRIES: usize = 500;

const DESCRIPTION: &str = "Lists the entries of a folder of the workspace, including dotfiles: folders first (`src/`), \
    then files with their size (`README.md  4.2 KB`), each sorted by name. Shows 500 entries per call; a note at the \
    end says how to see more.";

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    let functions = ReadFunctions { resolve, run: list };
    read_only_tool(workspace, "fs_list", DESCRIPTION, functions)
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// The folder, relative to the workspace; defaults to `.`, the workspace itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Number of entries to skip at the start, as given in the note of an earlier call; defaults to 0.
    skip: Option<u64>,
}

fn resolve<'a>(
    workspace: &'a Workspace,
    arguments: &ListArguments,
) -> Result<TargetPath<'a>, FileError> {
    let path = arguments.path.as_deref().unwrap_or(".");
    workspace.locate(path)?.target()
}

fn list(target: &TargetPath<'_>, arguments: ListArguments) -> Result<String, FileError> {
    let skip = arguments.skip.unwrap_or(0);
    let path = || target.display_path().to_owned();
    let folder = target.open_folder()?;
    let listing =
        Listing::read(&folder, skip).map_err(|error| FileError::explain(path(), None, error))?;
    let total = listing.total();
    if skip > 0 && skip >= total {
        let content = if total == 1 {
            "1 entry".to_owned()
        } else {
            format!("{total} entries")
        };
        return Err(FileError::PastTheEnd {
            path: path(),
            content,
            argument: "skip",
        });
    }

    let mut text = listing.summary(target);
    for entry in &listing.shown {
        text.push_str(&entry.line(folder.dir()));
        text.push('\n');
    }
    let next = skip + listing.shown.len() as u64;
    if next < total {
        let arguments = ListArguments {
            skip: Some(next),
            ..arguments
        };
        let call = call_text("fs_list", &arguments);
        text.push_str(&format!(
            "[{} of {total} entries shown, {} more; see them with {call}]\n",
            listing.shown.len(),
            total - next,
        ));
    }
    Ok(text)
}

/// The counts of a folder's entries by kind, and the entries to show.
#[derive(Default)]
struct Listing {
    folders: u64,
    files: u64,
    links: u64,
    others: u64,
    shown: Vec<Entry>,
}

impl Listing {
    fn read(folder: &Folder<'_>, skip: u64) -> io::Result<Self> {
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let needed = skip.saturating_add(SHOWN_ENTRIES);
        let mut listing = Self::default();
        for entry in folder.entries()? {
            let entry = Entry::of(&entry?);
            *listing.counter(entry.kind) += 1;
            listing.shown.push(entry);
            if listing.shown.len() >= needed.saturating_mul(2) {
                listing.shown.sort_unstable_by(Entry::order);
                listing.shown.truncate(needed);
            }
        }
        listing.shown.sort_unstable_by(Entry::order);
        listing.shown.truncate(needed);
        listing.shown.drain(..skip.min(listing.shown.len()));
        Ok(listing)
    }

    fn counter(&mut self, kind: EntryKind) -> &mut u64 {
        match kind {
            EntryKind::Folder => &mut self.folders,
            EntryKind::File => &mut self.files,
            EntryKind::Link => &mut self.links,
            _ => &mut self.others,
        }
    }

    fn total(&self) -> u64 {
        self.folders + self.files + self.links + self.others
    }

    fn summary(&self, target: &TargetPath<'_>) -> String {
        let mut counts = vec![
            show::count(self.folders, "folder"),
            show::count(self.files, "file"),
        ];
        let rare = [(self.links, "link"), (self.others, "special file")];
        counts.extend(
            rare.iter()
                .filter(|(number, _)| *number > 0)
                .map(|(number, noun)| show::count(*number, noun)),
        );
        format!("{} in {}\n", counts.join(", "), target.display_path())
    }
}

struct Entry {
    kind: EntryKind,
    name: OsString,
}

impl Entry {
    fn of(entry: &DirEntry) -> Self {
        let quick = entry.file_type().map_or(EntryKind::Other, EntryKind::from);
        let kind = match quick {
            // Not every file system returns the kind along with the name.
            EntryKind::Other => entry
                .metadata()
                .map_or(quick, |metadata| metadata.file_type().into()),
            known => known,
        };
        Self {
            kind,
            name: entry.file_name(),
        }
    }

    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let key = |entry: &Self| entry.kind != EntryKind::Folder;
        key(self)
            .cmp(&key(other))
            .then_with(|| self.name.cmp(&other.name))
    }

    /// Formats the entry: its name, two spaces, and its size, link target or kind.
    fn line(&self, folder: &Dir) -> String {
        let name = show::name(&self.name);
        let mut line = match self.kind {
            EntryKind::Folder => format!("{name}/"),
            EntryKind::File => match folder.symlink_metadata(&self.name) {
                Ok(metadata) => format!("{name}  {}", show::size(metadata.len())),
                Err(_) => format!("{name}  size unknown"),
            },
            EntryKind::Link => match folder.read_link_contents(&self.name) {
                Ok(target) => format!("{name}  link to {}", show::name(target.as_os_str())),
                Err(_) => format!("{name}  link"),
            },
            kind => format!("{name}  {kind}"),
        };
        if !show::is_exact(&self.name) {
            line.push_str("  (name is not UTF-8)");
        }
        line
    }
}
