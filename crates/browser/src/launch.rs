//! Starts a browser inside the sandbox, with a private directory and a network namespace that contains only lango's two
//! listeners.

mod find;
mod flags;
mod private;
mod process;

pub use find::{BrowserProgram, NoBrowser, find_browser};
pub(crate) use private::PrivateDirectory;
pub use private::remove_abandoned_directories;

use crate::files_server::FilesServer;
use crate::{Browser, BrowserError, ContextProxies};
pub(crate) use flags::OwnSandbox;
use lango_core::error_chain;
use lango_net::{Budget, Egress, Proxy, ProxyHandle, ProxyOptions};
use lango_sandbox::{
    Command, FILES_PORT, LaunchError, Launcher, Limits, Network, NewFiles, PROXY_PORT, Policy,
    Profile, Stdin,
};
use lango_tools::Workspace;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Timeout for starting the sandbox and the browser.
const START_TIME: Duration = Duration::from_secs(30);
/// Passes the pipe to the browser as descriptors 3 and 4, and redirects its standard output away from the pipe.
const PIPE_SCRIPT: &str = r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>&2"#;

/// The settings for starting browsers.
#[derive(Debug, Clone)]
pub struct BrowserLauncher {
    /// The program.
    pub program: BrowserProgram,
    /// The sandbox.
    pub sandbox: Launcher,
    /// The parent of the private directories.
    pub directory: PathBuf,
    /// The egress guard.
    pub egress: Egress,
    /// The files that pages of the workspace can load.
    pub workspace: Workspace,
}

/// A running browser with the servers that it uses.
#[derive(Debug)]
pub(crate) struct StartedBrowser {
    pub(crate) browser: Browser,
    _files: FilesServer,
    pub(crate) proxy: ProxyHandle,
    pub(crate) private: Arc<PrivateDirectory>,
}

impl BrowserLauncher {
    /// Tests whether Chromium's own sandbox can start inside lango's.
    pub(crate) async fn find_own_sandbox(&self) -> Result<OwnSandbox, BrowserError> {
        match self.sandbox.check_nesting().await {
            Ok(()) => Ok(OwnSandbox::On),
            Err(LaunchError::NoNesting { .. }) => Ok(OwnSandbox::Off),
            Err(error) => Err(not_started(error_chain(&error))),
        }
    }

    /// Starts a browser. Its requests count in `budget` until another one is set.
    pub(crate) async fn start(
        &self,
        own_sandbox: OwnSandbox,
        budget: Budget,
    ) -> Result<StartedBrowser, BrowserError> {
        let starting = self.start_unlimited(own_sandbox, budget);
        let starting = tokio::time::timeout(START_TIME, starting);
        let seconds = START_TIME.as_secs();
        let late = || not_started(format!("it took longer than {seconds} s"));
        starting.await.unwrap_or_else(|_| Err(late()))
    }

    async fn start_unlimited(
        &self,
        own_sandbox: OwnSandbox,
        budget: Budget,
    ) -> Result<StartedBrowser, BrowserError> {
        let private = PrivateDirectory::create(&self.directory).map_err(not_started)?;
        let private = Arc::new(private);
        let mut child = self
            .sandbox
            .spawn(&self.policy(&private), self.command(&private, own_sandbox))
            .map_err(|error| not_started(error_chain(&error)))?;
        let listeners = child.listeners().await;
        let listeners = listeners.map_err(|error| not_started(error_chain(&error)))?;
        let options = ProxyOptions {
            only_hosts: None,
            budget,
            credentials: None,
        };
        let proxy = Proxy::serve(listeners.proxy, self.egress.clone(), options);
        let proxy = proxy.map_err(not_started)?;
        let (service, reader, writer) = process::follow(child, Arc::clone(&private))?;
        let proxies = ContextProxies {
            web: &format!("http://127.0.0.1:{PROXY_PORT}"),
            files: &format!("http://127.0.0.1:{FILES_PORT}"),
        };
        let attached = Browser::attach(reader, writer, proxies, service.clone()).await;
        let browser = match attached {
            Ok(browser) => browser,
            Err(error) => return Err(not_started(process::explain(&service, error).await)),
        };
        browser.set_downloads(&private.downloads()).await?;
        let shared = Arc::downgrade(&browser.shared);
        let is_open = move || {
            let shared = shared.upgrade();
            shared.is_some_and(|shared| shared.tabs().has_workspace_page())
        };
        let files = FilesServer::serve(listeners.files, self.workspace.clone(), is_open);
        let files = files.map_err(not_started)?;
        Ok(StartedBrowser {
            browser,
            _files: files,
            proxy,
            private,
        })
    }

    fn policy(&self, private: &PrivateDirectory) -> Policy {
        let mut policy = Policy::of(private.path().to_owned());
        policy.unprotected = vec![private.path().to_owned()];
        policy.read = self.program.folders();
        policy.network = Network::Proxied;
        policy
    }

    fn command(&self, private: &PrivateDirectory, own_sandbox: OwnSandbox) -> Command {
        let mut argv = vec!["sh".into(), "-c".into(), PIPE_SCRIPT.into()];
        argv.push(self.program.path().into());
        argv.extend(flags::flags(&private.profile(), own_sandbox));
        let mut command = Command::new(argv, private.path().to_owned());
        command.env = flags::environment(private.path());
        command.stdin = Stdin::Piped;
        command.profile = Profile::Browser;
        command.new_files = NewFiles::Report;
        command.limits = limits();
        command
    }
}

/// Returns the limits of a browser, whose many threads each count as a process.
fn limits() -> Limits {
    const GIB: u64 = 1 << 30;
    Limits {
        time: None,
        processes: 2048,
        memory_bytes: 4 * GIB,
        file_bytes: GIB,
        written_bytes: 8 * GIB,
    }
}

fn not_started(reason: impl ToString) -> BrowserError {
    BrowserError::NotStarted {
        reason: reason.to_string(),
    }
}
