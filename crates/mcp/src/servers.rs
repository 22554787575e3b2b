//! All configured servers: opening them, their tools and overviews, logins and pins, and closing them.

mod claims;
mod lookup;
mod overview;
mod probe;

pub use overview::{ServerOverview, ToolOverview};
pub use probe::{ProbeResult, ProbedTool, ServerProbe};

use crate::attachments::Attachments;
use crate::error::ConnectError;
use crate::oauth::{Grants, LoginError};
use crate::pins::{PendingTool, PinBook, PinError, PinStore};
use crate::private_file::FileSeal;
use crate::program::PendingFile;
use crate::progress::StartProgress;
use crate::server::{Backoff, Server, ServerContext};
use crate::settings::ServerSettings;
use claims::Claims;
use futures_util::future::join_all;
use lango_core::Tool;
use lango_sandbox::{Launcher, SandboxStrength};
use lango_secrets::{Masks, SecretSource};
use lookup::OfferContext;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The parameters of [`Servers::open`].
#[derive(Debug)]
pub struct ServersSetup {
    /// The servers, sorted by id.
    pub servers: Vec<ServerSettings>,
    /// The launcher that starts programs in the sandbox.
    pub launcher: Launcher,
    /// How strong the sandbox is on this machine.
    pub strength: SandboxStrength,
    /// The file with the pins.
    pub pins: PathBuf,
    /// The file with the OAuth grants of logins.
    pub grants: PathBuf,
    /// The seal that encrypts the file with the grants; without one, the file is stored as plain text.
    pub grants_seal: Option<Arc<dyn FileSeal>>,
    /// Secret values to mask in everything that servers send.
    pub masks: Masks,
    /// The secrets that may be bound to arguments of the servers' tools.
    pub secrets: Arc<dyn SecretSource>,
    /// The folder for results that are not text.
    pub attachments: PathBuf,
    /// How long a handshake may take.
    pub start_timeout: Duration,
    /// How long to wait before reconnecting to a server that failed.
    pub backoff: Backoff,
    /// The function that shows the user the progress of a long start.
    pub progress: StartProgress,
    /// The names of the tools that do not belong to a server.
    pub reserved_names: BTreeSet<String>,
}

/// Whether to connect to servers without pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartMode {
    /// Connect to them, concurrently.
    ConnectUnpinned,
    /// Do not connect to any server.
    PinsOnly,
}

/// All configured MCP servers.
pub struct Servers {
    servers: Vec<Arc<Server>>,
    pins: PinStore,
    grants: Grants,
    strength: SandboxStrength,
    tools: Vec<Arc<dyn Tool>>,
    overview: Vec<ServerOverview>,
    warnings: Vec<String>,
}

impl Servers {
    /// Builds the tools from the pins. `start` decides whether it connects to servers without pins.
    pub async fn open(setup: ServersSetup, start: StartMode) -> Self {
        let pins = PinStore::at(setup.pins);
        let attachments = Attachments::at(setup.attachments);
        let grants = Grants::at(setup.grants).with_seal(setup.grants_seal);
        let context = ServerContext {
            launcher: setup.launcher,
            strength: setup.strength.clone(),
            pins: pins.clone(),
            attachments: attachments.clone(),
            grants: grants.clone(),
            masks: setup.masks,
            start_timeout: setup.start_timeout,
            backoff: setup.backoff,
            progress: setup.progress,
        };
        let servers: Vec<Arc<Server>> = setup
            .servers
            .into_iter()
            .map(|settings| Arc::new(Server::new(settings, context.clone())))
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
            PinBook::default()
        });
        let found = join_all(
            all.servers
                .iter()
                .map(|server| all.look_up(server, &book, start)),
        )
        .await;
        let named = all.servers.iter().zip(&found);
        let claims = Claims::new(
            setup.reserved_names,
            named.map(|(server, found)| (&**server, found.known(server, &book))),
        );
        let offer = OfferContext {
            attachments,
            claims,
            secrets: setup.secrets,
        };
        for (server, found) in all.servers.clone().into_iter().zip(found) {
            all.add(server, found, &offer);
        }
        all
    }

    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Returns an overview of each server.
    pub fn overview(&self) -> &[ServerOverview] {
        &self.overview
    }

    /// Returns warnings for the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Connects to the server with this id, or to all of them concurrently.
    pub async fn test(&self, id: Option<&str>) -> Vec<ServerProbe> {
        let wanted = self
            .servers
            .iter()
            .filter(|server| id.is_none_or(|id| server.id() == id));
        join_all(wanted.map(|server| probe::probe(server))).await
    }

    /// Logs in to an HTTP server. Calls `show` with the address that the user must open in a browser. If `scope` is
    /// set, requests it instead of the scope that the server asks for.
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

    /// Deletes the grant for a server. Returns whether there was one.
    pub fn logout(&self, id: &str) -> Result<bool, LoginError> {
        let deleted = self.grants.delete(id);
        deleted.map_err(|error| LoginError::NotStored {
            why: error.to_string(),
        })
    }

    /// Returns the new and changed tools of a server that the user has not accepted yet.
    pub fn pending(&self, id: &str) -> Result<Vec<PendingTool>, PinError> {
        self.pins.pending(id, self.digest(id)?)
    }

    /// Accepts the definitions that the user has seen, but none that the server has listed since then. Returns the
    /// names of the accepted tools.
    pub fn trust(&self, id: &str, seen: &[PendingTool]) -> Result<Vec<String>, PinError> {
        self.pins.accept(id, self.digest(id)?, seen)
    }

    /// Returns the files of a server's command that agents can write and that the user must trust before it starts.
    pub fn pending_files(&self, id: &str) -> Result<Vec<PendingFile>, ConnectError> {
        match self.server(id) {
            Some(server) => server.pending_files(),
            None => Ok(Vec::new()),
        }
    }

    /// Trusts files of a server's command with the content that the user saw.
    pub fn trust_files(&self, id: &str, seen: &[PendingFile]) -> Result<(), PinError> {
        let server = self.server(id).ok_or_else(|| PinError::NoSuchServer {
            server: id.to_owned(),
        })?;
        server.trust_files(seen)
    }

    /// Stops all servers. Returns warnings for the user.
    pub async fn close(&self) -> Vec<String> {
        let warnings = join_all(self.servers.iter().map(|server| server.close())).await;
        warnings.into_iter().flatten().collect()
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
