//! All servers of a configuration: their tools, what there is to say about them, and their end.

mod claims;
mod found;
mod overview;
mod probe;

pub use overview::{Overview, ToolOverview};
pub use probe::{Probe, Probed, ProbedTool};

use crate::attachments::Attachments;
use crate::error::ConnectError;
use crate::oauth::{Grants, LoginError};
use crate::pins::{Book, Pending, PinError, Pins};
use crate::private_file::FileSeal;
use crate::program::PendingFile;
use crate::progress::Progress;
use crate::server::{Pauses, Server, Surroundings};
use crate::settings::ServerSettings;
use claims::Claims;
use found::Offering;
use futures_util::future::join_all;
use lango_core::Tool;
use lango_sandbox::{Launcher, Strength};
use lango_secrets::{Masks, SecretSource};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What servers need.
#[derive(Debug)]
pub struct Setup {
    /// The servers, by id.
    pub servers: Vec<ServerSettings>,
    /// What starts programs.
    pub launcher: Launcher,
    /// How well programs are held here.
    pub strength: Strength,
    /// The file with the pins.
    pub pins: PathBuf,
    /// The file with what was granted at logins.
    pub grants: PathBuf,
    /// What encrypts that file, if something does.
    pub grants_seal: Option<Arc<dyn FileSeal>>,
    /// The values that are masked in what servers say.
    pub masks: Masks,
    /// The secrets that may be arguments of their tools.
    pub secrets: Arc<dyn SecretSource>,
    /// The folder for what is returned and is no text.
    pub attachments: PathBuf,
    /// How long a handshake may take.
    pub patience: Duration,
    /// How long a server that failed is left alone.
    pub pauses: Pauses,
    /// What shows the user how a long start goes.
    pub progress: Progress,
    /// The names that other tools have.
    pub taken: BTreeSet<String>,
}

/// What is done about servers of which nothing is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// They are connected, all at once.
    ConnectUnpinned,
    /// They are left alone.
    PinsOnly,
}

/// All servers.
pub struct Servers {
    servers: Vec<Arc<Server>>,
    pins: Pins,
    grants: Grants,
    strength: Strength,
    tools: Vec<Arc<dyn Tool>>,
    overview: Vec<Overview>,
    warnings: Vec<String>,
}

impl Servers {
    /// Builds the tools from the pins. Servers of which nothing is pinned are connected, or left alone.
    pub async fn open(setup: Setup, start: Start) -> Self {
        let pins = Pins::at(setup.pins);
        let attachments = Attachments::at(setup.attachments);
        let grants = Grants::at(setup.grants).with_seal(setup.grants_seal);
        let surroundings = Surroundings {
            launcher: setup.launcher,
            strength: setup.strength.clone(),
            pins: pins.clone(),
            attachments: attachments.clone(),
            grants: grants.clone(),
            masks: setup.masks,
            patience: setup.patience,
            pauses: setup.pauses,
            progress: setup.progress,
        };
        let servers: Vec<Arc<Server>> = setup
            .servers
            .into_iter()
            .map(|settings| Arc::new(Server::new(settings, surroundings.clone())))
            .collect();
        let mut all = Self {
            servers,
            pins,
            grants,
            strength: setup.strength,
            tools: Vec::new(),
            overview: Vec::new(),
            warnings: Vec::new(),
        };
        if all.servers.is_empty() {
            return all;
        }
        let book = all.pins.read().unwrap_or_else(|error| {
            all.warnings.push(error.to_string());
            Book::default()
        });
        let found = join_all(
            all.servers
                .iter()
                .map(|server| all.look(server, &book, start)),
        )
        .await;
        let named = all.servers.iter().zip(&found);
        let claims = Claims::new(
            setup.taken,
            named.map(|(server, found)| (&**server, found.known(server, &book))),
        );
        let offering = Offering {
            attachments,
            claims,
            secrets: setup.secrets,
        };
        for (server, found) in all.servers.clone().into_iter().zip(found) {
            all.add(server, found, &offering);
        }
        all
    }

    /// The tools.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// What there is to say about each server.
    pub fn overview(&self) -> &[Overview] {
        &self.overview
    }

    /// What a person should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Connects to the server of this name, or to all of them at once.
    pub async fn test(&self, id: Option<&str>) -> Vec<Probe> {
        let wanted = self
            .servers
            .iter()
            .filter(|server| id.is_none_or(|id| server.id() == id));
        join_all(wanted.map(|server| probe::probe(server))).await
    }

    /// Logs in to a server at an address. `show` is given the address that the person opens in a browser; `scope` is what
    /// is asked for besides what the server names itself.
    pub async fn login(
        &self,
        id: &str,
        scope: Option<&str>,
        show: impl FnOnce(&str) + Send,
    ) -> Result<(), LoginError> {
        let server = self.server(id);
        let server =
            server.ok_or_else(|| LoginError::unusable(format!("there is no MCP server `{id}`")))?;
        server.login(scope, show).await
    }

    /// Forgets what was granted for a server; says whether there was any.
    pub fn logout(&self, id: &str) -> Result<bool, LoginError> {
        let forgotten = self.grants.forget(id);
        forgotten.map_err(|error| LoginError::NotKept {
            why: error.to_string(),
        })
    }

    /// What of a server waits for being accepted.
    pub fn pending(&self, id: &str) -> Result<Vec<Pending>, PinError> {
        self.pins.pending(id, self.digest(id)?)
    }

    /// Accepts what a person has seen of a server, and nothing that it listed since; gives the names of the tools.
    pub fn trust(&self, id: &str, seen: &[Pending]) -> Result<Vec<String>, PinError> {
        self.pins.accept(id, self.digest(id)?, seen)
    }

    /// The files of a server's command that agents can write and that have to be trusted before it starts.
    pub fn pending_files(&self, id: &str) -> Result<Vec<PendingFile>, ConnectError> {
        match self.server(id) {
            Some(server) => server.pending_files(),
            None => Ok(Vec::new()),
        }
    }

    /// Trusts files of a server's command as the user saw them.
    pub fn trust_files(&self, id: &str, seen: &[PendingFile]) -> Result<(), PinError> {
        let server = self.server(id).ok_or_else(|| PinError::NoSuchServer {
            server: id.to_owned(),
        })?;
        server.trust_files(seen)
    }

    /// Ends every server that was started; gives what a person should hear.
    pub async fn close(&self) -> Vec<String> {
        let said = join_all(self.servers.iter().map(|server| server.close())).await;
        said.into_iter().flatten().collect()
    }

    fn server(&self, id: &str) -> Option<&Arc<Server>> {
        self.servers.iter().find(|server| server.id() == id)
    }

    fn digest(&self, id: &str) -> Result<&str, PinError> {
        let server = self.server(id);
        let digest = server.map(|server| server.digest.as_str());
        digest.ok_or_else(|| PinError::NoSuchServer {
            server: id.to_owned(),
        })
    }
}
