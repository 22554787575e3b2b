//! One server over time: connected when it is needed, called in the form in which its tools were offered. How it is let go
//! and tried again is in `standing`, what it says of its tools in `listing`, what its command may run in `command`.

mod command;
mod listing;
mod standing;

pub use standing::Pauses;

use crate::attachments::Attachments;
use crate::connection::{About, CallFault, Connection, Opening, Way};
use crate::error::{ConnectError, Failure};
use crate::names::line;
use crate::oauth::{self, Bearer, Grants, LoginError};
use crate::pins::{PinnedServer, Pins};
use crate::private_file;
use crate::process::NewFiles;
use crate::progress::Progress;
use crate::settings::{Reach, ServerSettings};
use lango_core::{Caller, ToolError};
use lango_sandbox::{Launcher, Strength, Watch};
use lango_secrets::Masks;
use rmcp::model::{CallToolResult, JsonObject};
use standing::Down;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long the first start of a server whose package has to be downloaded may take.
const FIRST_DOWNLOAD: Duration = Duration::from_secs(120);

/// What every server needs besides its settings.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) launcher: Launcher,
    pub(crate) strength: Strength,
    pub(crate) pins: Pins,
    pub(crate) attachments: Attachments,
    pub(crate) grants: Grants,
    pub(crate) masks: Masks,
    /// How long a handshake may take, and a list of tools.
    pub(crate) patience: Duration,
    pub(crate) pauses: Pauses,
    pub(crate) progress: Progress,
}

/// One server.
pub(crate) struct Server {
    pub(crate) settings: ServerSettings,
    pub(crate) digest: String,
    surroundings: Surroundings,
    way: Way,
    state: Mutex<State>,
    /// One call connects, the others wait for what comes of it.
    turnstile: Semaphore,
    new_files: Arc<NewFiles>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// The hash of each tool as the server listed it last, and how often it had announced new ones by then.
    listed: BTreeMap<String, String>,
    announced: u64,
    down: Option<Down>,
    failures: u32,
    is_closed: bool,
}

/// A server that was just connected.
pub(crate) struct Connected {
    pub(crate) about: About,
    pub(crate) pinned: PinnedServer,
    /// What a person should know of it.
    pub(crate) notes: Vec<String>,
}

impl Server {
    pub(crate) fn new(settings: ServerSettings, surroundings: Surroundings) -> Self {
        let way = match &settings.reach {
            Reach::Program(program) => Way::Program(program.clone()),
            Reach::Address(address) => {
                let grants = surroundings.grants.clone();
                let masks = surroundings.masks.clone();
                Way::Address(Bearer::new(&settings.id, address, grants, masks))
            }
        };
        Self {
            way,
            digest: settings.digest(),
            settings,
            surroundings,
            state: Mutex::default(),
            turnstile: Semaphore::new(1),
            new_files: Arc::default(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.settings.id
    }

    /// Watches for protected files while a call runs, if the program can write where people work.
    pub(crate) fn watch(&self) -> Option<Watch> {
        let Way::Program(program) = &self.way else {
            return None;
        };
        let policy = &program.policy;
        let mut writable = policy.writable();
        writable
            .any(|folder| !policy.unprotected.contains(folder))
            .then(|| Watch::start(&self.surroundings.launcher, policy).ok())
            .flatten()
    }

    /// Calls a tool in the form in which it was offered. The key of the caller is the call's own: what comes under it twice is one call.
    pub(crate) async fn call(
        &self,
        tool: &str,
        hash: &str,
        arguments: JsonObject,
        caller: &Caller,
    ) -> Result<CallToolResult, ToolError> {
        let connection = self.connected().await.map_err(ToolError::new)?;
        if let Err(failure) = self.hear_news(&connection).await {
            self.lose(&connection, failure.line()).await;
            return Err(ToolError::new(self.down().unwrap_or_default()));
        }
        self.refuse_what_changed(tool, hash)?;
        let id = self.id();
        match connection.call(tool, arguments, caller).await {
            Ok(result) => {
                let mut state = self.state();
                state.failures = 0;
                state.down = None;
                Ok(result)
            }
            Err(CallFault::Refused(error)) => Err(ToolError::new(format!(
                "the MCP server `{id}` refused the call: {} (code {})",
                line(&error.message, 1000),
                error.code.0
            ))),
            Err(CallFault::Unauthorised(advice)) => Err(ToolError::new(format!(
                "the MCP server `{id}` did not let the call in, so it was not done: {advice}"
            ))),
            Err(CallFault::Odd(what)) => Err(ToolError::new(format!(
                "the MCP server `{id}` answered, and {what}; whether the call was done, nobody knows"
            ))),
            Err(CallFault::Broken) => {
                let why = connection.end().await.line();
                self.lose(&connection, why.clone()).await;
                Err(ToolError::new(format!(
                    "the MCP server `{id}` broke off in the middle of the call ({why}); nobody knows whether it was done: \
                     do not repeat it, say so"
                )))
            }
        }
    }

    /// Takes what the proxy of the program refused since the last call, as remarks for a result.
    pub(crate) fn network_remarks(&self) -> Vec<String> {
        let connection = self.state().connection.clone();
        let remarks = connection.map(|connection| connection.network_remarks());
        remarks.unwrap_or_default()
    }

    /// Connects now, whatever happened before, and takes in what the server offers.
    pub(crate) async fn connect(&self) -> Result<Connected, Failure> {
        let _turn = self.turnstile.acquire().await;
        let connected = self.connect_in_turn().await;
        if let Err(failure) = &connected {
            self.note_down(failure.line());
        }
        connected
    }

    /// Logs in, if the server wants that. `show` is given the address that the person opens in a browser.
    pub(crate) async fn login(
        &self,
        scope: Option<&str>,
        show: impl FnOnce(&str) + Send,
    ) -> Result<(), LoginError> {
        let not_needed = |why: String| Err(LoginError::NotNeeded { why });
        let bearer = match &self.way {
            Way::Program(_) => return not_needed("its program is started here".to_owned()),
            Way::Address(bearer) => bearer,
        };
        if let Some(token) = &bearer.address.token {
            return not_needed(format!("its token is in `{}`", token.variable));
        }
        if scope.is_none() && bearer.challenge().is_none() {
            match self.connect().await {
                Ok(_) => return not_needed("the server lets lango in as it is".to_owned()),
                Err(failure) if bearer.challenge().is_none() => {
                    return Err(LoginError::unusable(failure.error.to_string()));
                }
                Err(_) => {}
            }
        }
        oauth::login(bearer, scope, show).await?;
        // It was refused for want of this; now there is no reason to wait.
        self.state().down = None;
        Ok(())
    }

    /// Returns the end of the program's error output.
    pub(crate) fn error_output(&self) -> String {
        let connection = self.state().connection.clone();
        connection
            .map(|connection| connection.error_output())
            .unwrap_or_default()
    }

    /// Ends it for good; says what a person should look at.
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
                "these files appeared while the MCP server `{}` ran, made by it or by another program: {}; look at them \
                 before you use them",
                self.id(),
                new.join(", ")
            )
        })
    }

    /// The connection, made if there is none; an error says that it is down.
    async fn connected(&self) -> Result<Arc<Connection>, String> {
        for _ in 0..2 {
            if let Some(connection) = self.live().await {
                return Ok(connection);
            }
            if let Some(down) = self.down() {
                return Err(down);
            }
            let _turn = self.turnstile.acquire().await;
            // Somebody else may have connected, or failed to, while this one waited.
            if self.state().connection.is_some() || self.down().is_some() {
                continue;
            }
            if let Err(failure) = self.connect_in_turn().await {
                self.note_down(failure.line());
            }
        }
        if let Some(connection) = self.live().await {
            return Ok(connection);
        }
        let why = self.state().down.as_ref().map(|down| down.why.clone());
        let why = why.unwrap_or_else(|| "it is not connected".to_owned());
        Err(self.down().unwrap_or_else(|| self.is_down(&why)))
    }

    async fn connect_in_turn(&self) -> Result<Connected, Failure> {
        let Surroundings {
            launcher,
            strength,
            patience,
            ..
        } = &self.surroundings;
        if self.state().is_closed {
            let what = "lango is about to end".to_owned();
            return Err(ConnectError::Broken { what }.into());
        }
        self.make_folders()?;
        let trusted = self.trusted_files();
        let is_first_download = self.is_first_download();
        let start_timeout = match is_first_download {
            true => FIRST_DOWNLOAD.max(*patience),
            false => *patience,
        };
        let opening = Opening {
            settings: &self.settings,
            way: &self.way,
            launcher,
            strength,
            patience: start_timeout,
            trusted: &trusted,
            new_files: &self.new_files,
            masks: &self.surroundings.masks,
        };
        let progress = &self.surroundings.progress;
        let opened = match is_first_download {
            true => {
                progress
                    .watch(self.id(), start_timeout, opening.open())
                    .await
            }
            false => opening.open().await,
        };
        let connection = opened.map_err(|failure| self.with_hint(failure))?;
        let announced = connection.new_tools();
        let listing = match connection.tools(*patience).await {
            Ok(listing) => listing,
            Err(failure) => {
                connection.close().await;
                return Err(self.with_hint(failure));
            }
        };
        let about = connection.about.clone();
        let (pinned, notes) = self.take_in(listing, announced, &about);
        let mut state = self.state();
        state.connection = Some(Arc::new(connection));
        state.down = None;
        Ok(Connected {
            about,
            pinned,
            notes,
        })
    }

    /// Returns whether the program downloads packages and never answered with these settings.
    fn is_first_download(&self) -> bool {
        self.downloads_packages()
            && !self
                .surroundings
                .pins
                .read()
                .is_ok_and(|book| book.of(self.id(), &self.digest).is_some())
    }

    /// Makes the folders that the program must not see, while it can still be kept from seeing them, and its own.
    fn make_folders(&self) -> Result<(), ConnectError> {
        let Surroundings {
            pins, attachments, ..
        } = &self.surroundings;
        let make = || {
            pins.make_folder()?;
            attachments.make_folder()?;
            if let Reach::Program(program) = &self.settings.reach {
                private_file::make_private_folder(&program.policy.workspace)?;
                private_file::make_private_folder(&program.copies)?;
            }
            Ok(())
        };
        make().map_err(|error: std::io::Error| ConnectError::NotStarted {
            why: format!("lango's own folder cannot be made: {error}"),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
