//! `fs_list`: the entries of a folder, one a line, folders first.
//!
//! All entries are counted, but only those that are shown are kept in memory and looked at, so a folder of a million
//! files costs no more than reading its names.

use super::{call_text, looking_tool};
use crate::Workspace;
use crate::file_error::FileError;
use crate::folder::Folder;
use crate::kind::Kind;
use crate::place::Place;
use crate::show;
use cap_std::fs::{Dir, DirEntry};
use lango_core::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::sync::Arc;

/// How many entries one call shows.
const SHOWN_ENTRIES: usize = 500;

const DESCRIPTION: &str = "Lists the entries of a folder of the workspace, hidden ones too: folders first (`src/`), \
    then files with their size (`README.md  4.2 KB`), each sorted by name. Shows 500 entries a call; a note at the \
    end says how to see more.";

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    looking_tool(workspace, "fs_list", DESCRIPTION, list)
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// The folder, relative to the workspace; `.`, the workspace itself, if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// How many entries to leave out at the start, as the note of an earlier call says; 0 if not given.
    skip: Option<u64>,
}

fn list(workspace: &Workspace, arguments: ListArguments) -> Result<String, FileError> {
    let path = arguments.path.as_deref().unwrap_or(".");
    let skip = arguments.skip.unwrap_or(0);
    let place = workspace.locate(path)?;
    let folder = place.open_folder()?;
    let listing = Listing::read(&folder, skip)
        .map_err(|error| FileError::explain(place.shown(), None, error))?;
    let total = listing.total();
    if skip > 0 && skip >= total {
        let content = if total == 1 {
            "1 entry".to_owned()
        } else {
            format!("{total} entries")
        };
        return Err(FileError::PastTheEnd {
            path: place.shown(),
            content,
            argument: "skip",
        });
    }

    let mut text = listing.summary(&place);
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
            "[{} of {total} entries shown, {} more follow; see them with {call}]\n",
            listing.shown.len(),
            total - next,
        ));
    }
    Ok(text)
}

/// How many of each kind a folder holds, and the entries to show of it.
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
        let kept = skip.saturating_add(SHOWN_ENTRIES);
        let mut listing = Self::default();
        for entry in folder.entries()? {
            let entry = Entry::of(&entry?);
            *listing.counter(entry.kind) += 1;
            listing.shown.push(entry);
            if listing.shown.len() >= kept.saturating_mul(2) {
                listing.shown.sort_unstable_by(Entry::order);
                listing.shown.truncate(kept);
            }
        }
        listing.shown.sort_unstable_by(Entry::order);
        listing.shown.truncate(kept);
        listing.shown.drain(..skip.min(listing.shown.len()));
        Ok(listing)
    }

    fn counter(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Folder => &mut self.folders,
            Kind::File => &mut self.files,
            Kind::Link => &mut self.links,
            _ => &mut self.others,
        }
    }

    fn total(&self) -> u64 {
        self.folders + self.files + self.links + self.others
    }

    fn summary(&self, place: &Place<'_>) -> String {
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
        format!("{} in {}\n", counts.join(", "), place.shown())
    }
}

struct Entry {
    kind: Kind,
    name: OsString,
}

impl Entry {
    fn of(entry: &DirEntry) -> Self {
        let quick = entry.file_type().map_or(Kind::Other, Kind::from);
        let kind = match quick {
            // Not every file system tells the kind along with the name.
            Kind::Other => entry
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
        let key = |entry: &Self| entry.kind != Kind::Folder;
        key(self)
            .cmp(&key(other))
            .then_with(|| self.name.cmp(&other.name))
    }

    /// The name, and after two spaces what there is to say of it.
    fn line(&self, folder: &Dir) -> String {
        let name = show::name(&self.name);
        let mut line = match self.kind {
            Kind::Folder => format!("{name}/"),
            Kind::File => match folder.symlink_metadata(&self.name) {
                Ok(metadata) => format!("{name}  {}", show::size(metadata.len())),
                Err(_) => format!("{name}  size unknown"),
            },
            Kind::Link => match folder.read_link_contents(&self.name) {
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
