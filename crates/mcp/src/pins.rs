//! Pins: the tool definitions that the user has accepted, in a file that only lango writes.
//!
//! lango pins a tool with the definition that it first sees. A different definition that the server lists later is
//! stored as pending next to the pin until the user accepts it.

use crate::private_file::PrivateFile;
use crate::program::{PendingFile, TrustedFiles};
use crate::tool_definition::ToolDefinition;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The version of the file format.
const VERSION: u32 = 1;

/// Why the pins cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    #[error(
        "the MCP server `{server}` has no pins yet; run `lango mcp test {server}` to connect to it"
    )]
    NoSuchServer { server: String },
    /// The file exists but is invalid.
    #[error("the pins in `{}` cannot be read: {why}; delete the file to pin all servers again", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("the pins in `{}` cannot be written", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}

/// The state of a tool compared with its pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// The tool equals its pin.
    Pinned,
    /// The tool differs from its pin, and the user has not accepted the change.
    Changed,
    /// The tool appeared after the others were pinned, and the user has not accepted it.
    New,
}

/// The file with the pins.
#[derive(Debug, Clone)]
pub(crate) struct PinStore {
    file: PrivateFile,
}

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PinBook {
    version: u32,
    servers: BTreeMap<String, PinnedServer>,
    /// The digests of the files that the user trusts, by server and path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, TrustedFiles>,
}

/// The pins of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct PinnedServer {
    /// The digest of the settings that it was connected with.
    settings: String,
    /// Its own name and version.
    pub(crate) name: String,
    /// Its own title without a version. Older files do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    pub(crate) tools: BTreeMap<String, PinnedTool>,
}

/// A tool: the accepted definition, and the current one if it differs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct PinnedTool {
    pub(crate) pinned: Option<ToolDefinition>,
    pub(crate) pending: Option<ToolDefinition>,
}

/// A new or changed tool that the user has not accepted.
#[derive(Debug, Clone)]
pub struct PendingTool {
    /// The server's name for it.
    pub tool: String,
    /// The accepted definition; `None` for a new tool.
    pub before: Option<ToolDefinition>,
    /// The definition that the server lists now.
    pub now: ToolDefinition,
}

/// What a server currently lists.
pub(crate) struct ServerSnapshot<'a> {
    pub(crate) server: &'a str,
    /// The digest of the settings that it was connected with.
    pub(crate) settings: &'a str,
    /// Its own name and version.
    pub(crate) name: &'a str,
    /// Its own title without a version.
    pub(crate) title: &'a str,
    pub(crate) tools: BTreeMap<String, ToolDefinition>,
}

impl PinnedTool {
    /// Returns the definition that is offered to agents.
    pub(crate) fn offered(&self) -> Option<&ToolDefinition> {
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
    /// Pins all tools of a server that is connected for the first time.
    fn first(snapshot: ServerSnapshot<'_>) -> Self {
        let pinned = |definition| PinnedTool {
            pinned: Some(definition),
            pending: None,
        };
        let tools = snapshot.tools.into_iter();
        let tools = tools.map(|(name, definition)| (name, pinned(definition)));
        Self {
            settings: snapshot.settings.to_owned(),
            name: snapshot.name.to_owned(),
            title: Some(snapshot.title.to_owned()),
            tools: tools.collect(),
        }
    }

    /// Records the tools that the server lists now. Removes the pins of tools that it no longer lists, so they count as
    /// new if they come back.
    pub(crate) fn record_tools(&mut self, listed: &BTreeMap<String, ToolDefinition>) {
        self.tools.retain(|name, _| listed.contains_key(name));
        for (name, definition) in listed {
            let tool = self.tools.entry(name.clone()).or_default();
            let is_pinned = tool
                .pinned
                .as_ref()
                .is_some_and(|pinned| pinned.hash == definition.hash);
            tool.pending = (!is_pinned).then(|| definition.clone());
        }
    }

    /// Accepts the pending definitions that equal the seen ones. Returns the names of the tools.
    fn accept(&mut self, seen: &[PendingTool]) -> Vec<String> {
        let mut accepted = Vec::new();
        for PendingTool { tool, now, .. } in seen {
            let Some(entry) = self.tools.get_mut(tool) else {
                continue;
            };
            let seen = entry.pending.take_if(|pending| pending.hash == now.hash);
            if let Some(definition) = seen {
                entry.pinned = Some(definition);
                accepted.push(tool.clone());
            }
        }
        accepted
    }
}

impl PinBook {
    /// Returns the pins of a server if they were made with these settings.
    pub(crate) fn of(&self, server: &str, settings: &str) -> Option<&PinnedServer> {
        let pinned = self.servers.get(server)?;
        (pinned.settings == settings).then_some(pinned)
    }

    /// Returns the last pins of a server, whatever its settings were.
    pub(crate) fn last(&self, server: &str) -> Option<&PinnedServer> {
        self.servers.get(server)
    }

    /// Returns the files that the user trusts for a server.
    pub(crate) fn trusted_files(&self, server: &str) -> TrustedFiles {
        self.files.get(server).cloned().unwrap_or_default()
    }
}

impl PinStore {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            file: PrivateFile::at(path),
        }
    }

    /// Reads the pins; empty if the file does not exist.
    pub(crate) fn read(&self) -> Result<PinBook, PinError> {
        let unreadable = |why: String| PinError::Unreadable {
            path: self.file.path().to_owned(),
            why,
        };
        let book = self.file.read::<PinBook>();
        let Some(book) = book.map_err(|error| unreadable(error.to_string()))? else {
            return Ok(PinBook::default());
        };
        if book.version != VERSION {
            return Err(unreadable(format!("its version is {}", book.version)));
        }
        let tools = book
            .servers
            .values()
            .flat_map(|server| server.tools.values());
        let mut definitions = tools.flat_map(|tool| tool.pinned.iter().chain(&tool.pending));
        if definitions.all(ToolDefinition::is_intact) {
            Ok(book)
        } else {
            Err(unreadable("a hash does not match its tool".to_owned()))
        }
    }

    /// Compares the tools that a server lists with its pins, and records the differences. Returns the new pins, which
    /// apply to this process even if they cannot be written, and the result of writing them.
    pub(crate) fn record_tools(
        &self,
        snapshot: ServerSnapshot<'_>,
    ) -> (PinnedServer, Result<(), PinError>) {
        // Locked from the read to the write, so that nothing the user accepts in between is lost.
        let lock = self.file.lock();
        let server = snapshot.server.to_owned();
        // An unreadable file was reported when the servers were opened; it is replaced here.
        let mut book = self.read().unwrap_or_default();
        let before = book.of(snapshot.server, snapshot.settings).cloned();
        let pinned = match before.clone() {
            Some(mut pinned) => {
                pinned.record_tools(&snapshot.tools);
                let title = || snapshot.title.to_owned();
                pinned.title.get_or_insert_with(title);
                pinned
            }
            None => PinnedServer::first(snapshot),
        };
        if before.as_ref() == Some(&pinned) {
            return (pinned, Ok(()));
        }
        book.version = VERSION;
        book.servers.insert(server, pinned.clone());
        let written = lock.and_then(|_lock| self.file.replace(&book));
        (pinned, written.map_err(|cause| self.unwritable(cause)))
    }

    /// Returns the tools of a server that the user has not accepted.
    pub(crate) fn pending(
        &self,
        server: &str,
        settings: &str,
    ) -> Result<Vec<PendingTool>, PinError> {
        let book = self.read()?;
        let pinned = book.of(server, settings).ok_or_else(|| none_of(server))?;
        let pending = pinned.tools.iter().filter_map(|(tool, pin)| {
            Some(PendingTool {
                tool: tool.clone(),
                before: pin.pinned.clone(),
                now: pin.pending.clone()?,
            })
        });
        Ok(pending.collect())
    }

    /// Accepts the definitions that the user has seen, but none that the server has listed since then. Returns the
    /// names of the accepted tools.
    pub(crate) fn accept(
        &self,
        server: &str,
        settings: &str,
        seen: &[PendingTool],
    ) -> Result<Vec<String>, PinError> {
        let _lock = self.file.lock().map_err(|cause| self.unwritable(cause))?;
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

    /// Trusts files of a server with the content that the user saw.
    pub(crate) fn trust_files(&self, server: &str, seen: &[PendingFile]) -> Result<(), PinError> {
        let _lock = self.file.lock().map_err(|cause| self.unwritable(cause))?;
        let mut book = self.read()?;
        book.version = VERSION;
        let files = book.files.entry(server.to_owned()).or_default();
        let seen = seen.iter();
        files.extend(seen.map(|file| (file.path.display().to_string(), file.digest.clone())));
        let written = self.file.replace(&book);
        written.map_err(|cause| self.unwritable(cause))
    }

    /// Creates the folder of the file, which must exist before a server starts.
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
    fn concurrent_listing_and_accepting_lose_no_update() {
        let folder = tempfile::tempdir().unwrap();
        let pins = PinStore::at(folder.path().join("own/pins.json"));
        let listed = |server: &str, description: &str| {
            let definition = ToolDefinition::new(description.to_owned(), json!({}));
            let (_, written) = pins.record_tools(ServerSnapshot {
                server,
                settings: "x",
                name: "n",
                title: "n",
                tools: BTreeMap::from([("t".to_owned(), definition)]),
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
