//! What servers said of their tools when a person last agreed to it, in a file of lango's own.
//!
//! A tool is pinned in the form in which it was first seen. A form that the server gives later is kept beside the pin,
//! pending, until the person accepts it.

use crate::form::Form;
use crate::private_file::PrivateFile;
use crate::program::{PendingFile, TrustedFiles};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The version of the file.
const VERSION: u32 = 1;

/// Why the pins cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// There are none of this server.
    #[error(
        "nothing is pinned of the MCP server `{server}`; `lango mcp test {server}` connects to it"
    )]
    NoSuchServer {
        /// The server.
        server: String,
    },
    /// The file is there and makes no sense.
    #[error("the pins in `{}` cannot be read: {why}; remove the file to pin every server anew", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be written.
    #[error("the pins in `{}` cannot be written", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

/// How a tool stands against its pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// It is what was pinned.
    Pinned,
    /// It changed since, and nobody accepted that yet.
    Changed,
    /// It was not there when the others were pinned, and nobody accepted it yet.
    New,
}

/// The file.
#[derive(Debug, Clone)]
pub(crate) struct Pins {
    file: PrivateFile,
}

/// What is in it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Book {
    version: u32,
    servers: BTreeMap<String, PinnedServer>,
    /// The files that the user trusts, by server and path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, TrustedFiles>,
}

/// What is known of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct PinnedServer {
    /// The digest of the settings with which it was reached.
    settings: String,
    /// What it called itself.
    pub(crate) name: String,
    /// The same without a version; none in files from before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    pub(crate) tools: BTreeMap<String, PinnedTool>,
}

/// One tool: what was accepted, and what it is now if that is something else.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct PinnedTool {
    pub(crate) pinned: Option<Form>,
    pub(crate) pending: Option<Form>,
}

/// A tool that waits for being accepted.
#[derive(Debug, Clone)]
pub struct Pending {
    /// What the server calls it.
    pub tool: String,
    /// What was accepted of it before; nothing for a new one.
    pub before: Option<Form>,
    /// What the server says of it now.
    pub now: Form,
}

/// What a server lists.
pub(crate) struct Seen<'a> {
    pub(crate) server: &'a str,
    /// The digest of the settings with which it was reached.
    pub(crate) settings: &'a str,
    /// What it calls itself.
    pub(crate) name: &'a str,
    /// The same without a version.
    pub(crate) title: &'a str,
    pub(crate) tools: BTreeMap<String, Form>,
}

impl PinnedTool {
    /// The form in which it is offered.
    pub(crate) fn offered(&self) -> Option<&Form> {
        self.pending.as_ref().or(self.pinned.as_ref())
    }

    pub(crate) fn state(&self) -> ToolState {
        match (&self.pinned, &self.pending) {
            (_, None) => ToolState::Pinned,
            (Some(_), Some(_)) => ToolState::Changed,
            (None, Some(_)) => ToolState::New,
        }
    }
}

impl PinnedServer {
    /// A server that is seen for the first time: all of it is accepted.
    fn first(seen: Seen<'_>) -> Self {
        let pinned = |form| PinnedTool {
            pinned: Some(form),
            pending: None,
        };
        let tools = seen.tools.into_iter();
        let tools = tools.map(|(name, form)| (name, pinned(form)));
        Self {
            settings: seen.settings.to_owned(),
            name: seen.name.to_owned(),
            title: Some(seen.title.to_owned()),
            tools: tools.collect(),
        }
    }

    /// Takes in what the server lists now. What it no longer has is forgotten, so that it is new if it comes back.
    pub(crate) fn take_in(&mut self, listed: &BTreeMap<String, Form>) {
        self.tools.retain(|name, _| listed.contains_key(name));
        for (name, form) in listed {
            let tool = self.tools.entry(name.clone()).or_default();
            let is_pinned = tool
                .pinned
                .as_ref()
                .is_some_and(|pinned| pinned.hash == form.hash);
            tool.pending = match is_pinned {
                true => None,
                false => Some(form.clone()),
            };
        }
    }

    /// Accepts what is pending in the very form that was seen; gives the names.
    fn accept(&mut self, seen: &[Pending]) -> Vec<String> {
        let mut accepted = Vec::new();
        for Pending { tool, now, .. } in seen {
            let Some(entry) = self.tools.get_mut(tool) else {
                continue;
            };
            let form = entry.pending.take_if(|form| form.hash == now.hash);
            if let Some(form) = form {
                entry.pinned = Some(form);
                accepted.push(tool.clone());
            }
        }
        accepted
    }
}

impl Book {
    /// What is pinned of a server that is reached like this.
    pub(crate) fn of(&self, server: &str, settings: &str) -> Option<&PinnedServer> {
        let pinned = self.servers.get(server)?;
        (pinned.settings == settings).then_some(pinned)
    }

    /// Returns what was last pinned of a server, however it was reached.
    pub(crate) fn last(&self, server: &str) -> Option<&PinnedServer> {
        self.servers.get(server)
    }

    /// The files that the user trusts for a server.
    pub(crate) fn trusted_files(&self, server: &str) -> TrustedFiles {
        self.files.get(server).cloned().unwrap_or_default()
    }
}

impl Pins {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            file: PrivateFile::at(path),
        }
    }

    /// What is pinned; nothing where there is no file.
    pub(crate) fn read(&self) -> Result<Book, PinError> {
        let unreadable = |why: String| PinError::Unreadable {
            path: self.file.path().to_owned(),
            why,
        };
        let book = self.file.read::<Book>();
        let Some(book) = book.map_err(|error| unreadable(error.to_string()))? else {
            return Ok(Book::default());
        };
        if book.version != VERSION {
            return Err(unreadable(format!("its version is {}", book.version)));
        }
        let tools = book
            .servers
            .values()
            .flat_map(|server| server.tools.values());
        let mut forms = tools.flat_map(|tool| tool.pinned.iter().chain(&tool.pending));
        match forms.all(Form::is_whole) {
            true => Ok(book),
            false => Err(unreadable(
                "a hash does not fit what it stands for".to_owned(),
            )),
        }
    }

    /// Holds what a server lists against what is pinned of it, and notes what is new. What could not be written is told, and
    /// holds for this process all the same.
    pub(crate) fn take_in(&self, seen: Seen<'_>) -> (PinnedServer, Result<(), PinError>) {
        // From the reading to the writing, so that nothing that a person accepts meanwhile is undone.
        let held = self.file.hold();
        let server = seen.server.to_owned();
        // What cannot be read was reported when it was first read; it is made anew here.
        let mut book = self.read().unwrap_or_default();
        let before = book.of(seen.server, seen.settings).cloned();
        let pinned = match before.clone() {
            Some(mut pinned) => {
                pinned.take_in(&seen.tools);
                pinned.title.get_or_insert_with(|| seen.title.to_owned());
                pinned
            }
            None => PinnedServer::first(seen),
        };
        if before.as_ref() == Some(&pinned) {
            return (pinned, Ok(()));
        }
        book.version = VERSION;
        book.servers.insert(server, pinned.clone());
        let written = held.and_then(|_held| self.file.replace(&book));
        (pinned, written.map_err(|cause| self.unwritable(cause)))
    }

    /// What of a server waits for being accepted.
    pub(crate) fn pending(&self, server: &str, settings: &str) -> Result<Vec<Pending>, PinError> {
        let book = self.read()?;
        let pinned = book.of(server, settings).ok_or_else(|| none_of(server))?;
        let pending = pinned.tools.iter().filter_map(|(tool, pin)| {
            Some(Pending {
                tool: tool.clone(),
                before: pin.pinned.clone(),
                now: pin.pending.clone()?,
            })
        });
        Ok(pending.collect())
    }

    /// Accepts what was seen of a server, and nothing that it listed since; gives the names of the tools.
    pub(crate) fn accept(
        &self,
        server: &str,
        settings: &str,
        seen: &[Pending],
    ) -> Result<Vec<String>, PinError> {
        let _held = self.file.hold().map_err(|cause| self.unwritable(cause))?;
        let mut book = self.read()?;
        let entry = book.servers.get_mut(server);
        let pinned = entry.filter(|pinned| pinned.settings == settings);
        let accepted = pinned.ok_or_else(|| none_of(server))?.accept(seen);
        if !accepted.is_empty() {
            let written = self.file.replace(&book);
            written.map_err(|cause| self.unwritable(cause))?;
        }
        Ok(accepted)
    }

    /// Trusts files of a server as they were seen.
    pub(crate) fn trust_files(&self, server: &str, seen: &[PendingFile]) -> Result<(), PinError> {
        let _held = self.file.hold().map_err(|cause| self.unwritable(cause))?;
        let mut book = self.read()?;
        book.version = VERSION;
        let files = book.files.entry(server.to_owned()).or_default();
        let seen = seen.iter();
        files.extend(seen.map(|file| (file.path.display().to_string(), file.digest.clone())));
        let written = self.file.replace(&book);
        written.map_err(|cause| self.unwritable(cause))
    }

    /// Makes the folder of the file, which has to be there before a server starts.
    pub(crate) fn make_folder(&self) -> io::Result<()> {
        self.file.make_folder()
    }

    fn unwritable(&self, cause: io::Error) -> PinError {
        PinError::Unwritable {
            path: self.file.path().to_owned(),
            cause,
        }
    }
}

fn none_of(server: &str) -> PinError {
    PinError::NoSuchServer {
        server: server.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::thread;

    #[test]
    fn what_is_listed_and_accepted_at_the_same_time_undoes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let pins = Pins::at(folder.path().join("own/pins.json"));
        let listed = |server: &str, description: &str| {
            let form = Form::new(description.to_owned(), json!({}));
            let (_, written) = pins.take_in(Seen {
                server,
                settings: "x",
                name: "n",
                title: "n",
                tools: BTreeMap::from([("t".to_owned(), form)]),
            });
            written.unwrap();
        };
        const ROUNDS: usize = 40;
        listed("b", "first");
        thread::scope(|scope| {
            scope.spawn(|| (0..ROUNDS).for_each(|round| listed("a", &round.to_string())));
            for round in 0..ROUNDS {
                listed("b", &format!("form {round}"));
                let seen = pins.pending("b", "x").unwrap();
                assert_eq!(pins.accept("b", "x", &seen).unwrap(), ["t"], "{round}");
                assert!(pins.pending("b", "x").unwrap().is_empty(), "{round}");
            }
        });
        let seen = pins.pending("a", "x").unwrap();
        assert_eq!(seen[0].now.description, (ROUNDS - 1).to_string());
        assert_eq!(seen[0].before.as_ref().unwrap().description, "0");
    }
}
