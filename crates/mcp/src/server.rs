//! One server: lango connects to it when a tool is called, and calls a tool only if its definition is the offered one.
//! `backoff` handles failures and reconnects, `listing` the server's tool list, `command` the checks of its command.

mod backoff;
mod command;
mod listing;

pub use backoff::Backoff;

use crate::attachments::Attachments;
use crate::connection::{CallFault, Connection, Connector, ServerInfo, Transport};
use crate::error::{ConnectError, ConnectFailure};
use crate::names::one_line;
use crate::oauth::{self, Grants, LoginError, ServerAuth};
use crate::pins::{PinStore, PinnedServer};
use crate::private_file;
use crate::process::NewFiles;
use crate::progress::StartProgress;
use crate::settings::{ServerSettings, ServerTarget};
use backoff::Outage;
use lango_core::{Caller, ToolError};
use lango_sandbox::{CleanUpWatch, Launcher, SandboxStrength};
use lango_secrets::Masks;
use rmcp::model::{CallToolResult, JsonObject};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Minimum timeout for the first start of a server that downloads packages.
const FIRST_DOWNLOAD: Duration = Duration::from_secs(120);

/// What all servers share.
#[derive(Debug, Clone)]
pub(crate) struct ServerContext {
    pub(crate) launcher: Launcher,
    pub(crate) strength: SandboxStrength,
    pub(crate) pins: PinStore,
    pub(crate) attachments: Attachments,
    pub(crate) grants: Grants,
    pub(crate) masks: Masks,
    /// How long a handshake, or listing the tools, may take.
    pub(crate) start_timeout: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) progress: StartProgress,
}

/// A configured server, connected or not.
pub(crate) struct Server {
    pub(crate) settings: ServerSettings,
    pub(crate) digest: String,
    context: ServerContext,
    transport: Transport,
    state: Mutex<State>,
    /// Held by the call that connects, while the others wait for the result.
    connect_lock: Semaphore,
    new_files: Arc<NewFiles>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// The hash of each tool in the server's latest listing.
    listed: BTreeMap<String, String>,
    /// The number of change notifications before that listing.
    listed_changes: u64,
    outage: Option<Outage>,
    failures: u32,
    is_closed: bool,
}

/// What a server reported when it was connected.
pub(crate) struct ConnectedServer {
    pub(crate) info: ServerInfo,
    pub(crate) pinned: PinnedServer,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

impl Server {
    pub(crate) fn new(settings: ServerSettings, context: ServerContext) -> Self {
        let transport = match &settings.target {
            ServerTarget::Program(program) => Transport::Program(program.clone()),
            ServerTarget::Http(address) => {
                let grants = context.grants.clone();
                let masks = context.masks.clone();
                Transport::Http(ServerAuth::new(&settings.id, address, grants, masks))
            }
        };
        Self {
            transport,
            digest: settings.digest(),
            settings,
            context,
            state: Mutex::default(),
            connect_lock: Semaphore::new(1),
            new_files: Arc::default(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.settings.id
    }

    /// Starts to watch for new protected files during a call, if the program can write the user's folders.
    pub(crate) fn watch(&self) -> Option<CleanUpWatch> {
        let Transport::Program(program) = &self.transport else {
            return None;
        };
        let policy = &program.policy;
        let mut writable = policy.writable();
        writable
            .any(|folder| !policy.unprotected.contains(folder))
            .then(|| CleanUpWatch::start(&self.context.launcher, policy).ok())
            .flatten()
    }

    /// Calls a tool; connects first if necessary. Fails if the tool's definition differs from the offered one, whose
    /// hash is `hash`.
    pub(crate) async fn call(
        &self,
        tool: &str,
        hash: &str,
        arguments: JsonObject,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        let connection = self.connected().await.map_err(ToolError::new)?;
        if let Err(failure) = self.refresh_tools(&connection).await {
            self.drop_connection(&connection, failure.to_line()).await;
            return Err(ToolError::new(self.outage_message().unwrap_or_default()));
        }
        self.check_unchanged(tool, hash)?;
        let id = self.id();
        match connection.call(tool, arguments, caller).await {
            Ok(result) => {
                let mut state = self.state();
                state.failures = 0;
                state.outage = None;
                Ok(result)
            }
            Err(CallFault::Refused(error)) => Err(ToolError::new(format!(
                "the MCP server `{id}` refused the call: {} (code {})",
                one_line(&error.message, 1000),
                error.code.0
            ))),
            Err(CallFault::Unauthorised(advice)) => Err(ToolError::new(format!(
                "the MCP server `{id}` did not authorise the call, so it did not run: {advice}"
            ))),
            Err(CallFault::Malformed(what)) => Err(ToolError::new(format!(
                "the MCP server `{id}` answered, but {what}; it is unknown whether the call ran"
            ))),
            Err(CallFault::Broken) => {
                let why = connection.end().await.to_line();
                self.drop_connection(&connection, why.clone()).await;
                Err(ToolError::new(format!(
                    "the connection to the MCP server `{id}` broke during the call ({why}); it is unknown whether the call \
                     ran: do not repeat it, and tell the user"
                )))
            }
        }
    }

    /// Takes the requests that the program's proxy refused since the last call, as remarks for a result.
    pub(crate) fn network_remarks(&self) -> Vec<String> {
        let connection = self.state().connection.clone();
        let remarks = connection.map(|connection| connection.network_remarks());
        remarks.unwrap_or_default()
    }

    /// Connects now, without waiting for the backoff, and records the tools that the server lists.
    pub(crate) async fn connect(&self) -> Result<ConnectedServer, ConnectFailure> {
        let _turn = self.connect_lock.acquire().await;
        let connected = self.connect_locked().await;
        if let Err(failure) = &connected {
            self.record_failure(failure.to_line());
        }
        connected
    }

    /// Logs in if the server requires it. Calls `show` with the address that the user must open in a browser.
    pub(crate) async fn login(
        &self,
        scope: Option<&str>,
        show: impl FnOnce(&str) + Send,
    ) -> Result<(), LoginError> {
        let not_needed = |why: String| Err(LoginError::NotNeeded { why });
        let auth = match &self.transport {
            Transport::Program(_) => {
                return not_needed("lango starts its program itself".to_owned());
            }
            Transport::Http(auth) => auth,
        };
        if let Some(token) = &auth.address.token {
            return not_needed(format!("its token is in `{}`", token.variable));
        }
        if scope.is_none() && auth.challenge().is_none() {
            match self.connect().await {
                Ok(_) => return not_needed("the server accepts lango without it".to_owned()),
                Err(failure) if auth.challenge().is_none() => {
                    return Err(LoginError::unusable(failure.error.to_string()));
                }
                Err(_) => {}
            }
        }
        oauth::login(auth, scope, show).await?;
        // The server failed because this login was missing, so the next call need not wait for the backoff.
        self.state().outage = None;
        Ok(())
    }

    /// Returns the end of the program's error output.
    pub(crate) fn error_output(&self) -> String {
        let connection = self.state().connection.clone();
        connection
            .map(|connection| connection.error_output())
            .unwrap_or_default()
    }

    /// Closes the server for good. Returns a warning about protected files that appeared while it ran.
    pub(crate) async fn close(&self) -> Option<String> {
        let connection = {
            let mut state = self.state();
            state.is_closed = true;
            state.connection.take()
        };
        if let Some(connection) = connection {
            connection.close().await;
        }
        let new = self.new_files.take();
        let new: Vec<String> = new.iter().map(|path| path.display().to_string()).collect();
        (!new.is_empty()).then(|| {
            format!(
                "these files appeared while the MCP server `{}` ran, created by it or by another program: {}; check them \
                 before you use them",
                self.id(),
                new.join(", ")
            )
        })
    }

    /// Returns the connection, and connects if there is none. The error says that the server is down.
    async fn connected(&self) -> Result<Arc<Connection>, String> {
        for _ in 0..2 {
            if let Some(connection) = self.live_connection().await {
                return Ok(connection);
            }
            if let Some(down) = self.outage_message() {
                return Err(down);
            }
            let _turn = self.connect_lock.acquire().await;
            // Another call may have connected, or failed to, while this one waited.
            if self.state().connection.is_some() || self.outage_message().is_some() {
                continue;
            }
            if let Err(failure) = self.connect_locked().await {
                self.record_failure(failure.to_line());
            }
        }
        if let Some(connection) = self.live_connection().await {
            return Ok(connection);
        }
        let why = self.state().outage.as_ref().map(|down| down.why.clone());
        let why = why.unwrap_or_else(|| "it is not connected".to_owned());
        Err(self
            .outage_message()
            .unwrap_or_else(|| self.down_message(&why)))
    }

    async fn connect_locked(&self) -> Result<ConnectedServer, ConnectFailure> {
        let ServerContext {
            launcher,
            strength,
            start_timeout,
            ..
        } = &self.context;
        if self.state().is_closed {
            let what = "lango is about to exit".to_owned();
            return Err(ConnectError::Broken { what }.into());
        }
        self.make_folders()?;
        let trusted = self.trusted_files();
        let is_first_download = self.is_first_download();
        let connect_timeout = if is_first_download {
            FIRST_DOWNLOAD.max(*start_timeout)
        } else {
            *start_timeout
        };
        let connector = Connector {
            settings: &self.settings,
            transport: &self.transport,
            launcher,
            strength,
            start_timeout: connect_timeout,
            trusted: &trusted,
            new_files: &self.new_files,
            masks: &self.context.masks,
        };
        let progress = &self.context.progress;
        let opened = if is_first_download {
            progress
                .watch(self.id(), connect_timeout, connector.open())
                .await
        } else {
            connector.open().await
        };
        let connection = opened.map_err(|failure| self.with_hint(failure))?;
        let listed_changes = connection.tool_list_changes();
        let listing = match connection.tools(*start_timeout).await {
            Ok(listing) => listing,
            Err(failure) => {
                connection.close().await;
                return Err(self.with_hint(failure));
            }
        };
        let info = connection.info.clone();
        let (pinned, notes) = self.record_tools(listing, listed_changes, &info);
        let mut state = self.state();
        state.connection = Some(Arc::new(connection));
        state.outage = None;
        Ok(ConnectedServer {
            info,
            pinned,
            notes,
        })
    }

    /// Returns whether the program downloads packages and was never connected with these settings.
    fn is_first_download(&self) -> bool {
        self.downloads_packages()
            && !self
                .context
                .pins
                .read()
                .is_ok_and(|book| book.of(self.id(), &self.digest).is_some())
    }

    /// Creates the program's own folder, and the folders that the program must not see. They must exist before the
    /// start, because the sandbox can hide only what exists.
    fn make_folders(&self) -> Result<(), ConnectError> {
        let ServerContext {
            pins, attachments, ..
        } = &self.context;
        let make = || {
            pins.make_folder()?;
            attachments.make_folder()?;
            if let ServerTarget::Program(program) = &self.settings.target {
                private_file::make_private_folder(&program.policy.workspace)?;
                private_file::make_private_folder(&program.copies)?;
            }
            Ok(())
        };
        make().map_err(|error: std::io::Error| ConnectError::NotStarted {
            why: format!("lango cannot create its own folder: {error}"),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
