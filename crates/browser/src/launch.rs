//! Starts a browser inside the sandbox, with a private directory and a network namespace that contains only lango's two
//! listeners.

mod find;
mod flags;
mod private;
mod process;

pub use find::{BrowserNotFound, BrowserProgram, find_browser};
pub(crate) use private::PrivateDirectory;
pub use private::remove_abandoned_directories;

use crate::files_server::FilesServer;
use crate::{Browser, BrowserError, ContextProxies};
pub(crate) use flags::ChromiumSandbox;
use lango_core::error_chain;
use lango_net::{Budget, Egress, Proxy, ProxyHandle, ProxyOptions};
use lango_sandbox::{
    Command, FILES_PORT, LaunchError, Launcher, Network, NewFiles, PROXY_PORT, Policy,
    ResourceLimits, SandboxProfile, Stdin,
};
use lango_tools::Workspace;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Timeout for starting the sandbox and the browser.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Shell script that passes the pipe to the browser as file descriptors 3 and 4, and redirects its standard output away
/// from the pipe.
const PIPE_SCRIPT: &str = r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>&2"#;

/// The settings for starting browsers.
#[derive(Debug, Clone)]
pub struct BrowserLauncher {
    pub program: BrowserProgram,
    pub sandbox: Launcher,
    /// The parent of the browsers' private directories.
    pub directory: PathBuf,
    pub egress: Egress,
    /// The files that pages of the workspace can load.
    pub workspace: Workspace,
}

/// A running browser with the proxy and the file server that it uses.
#[derive(Debug)]
pub(crate) struct StartedBrowser {
    pub(crate) browser: Browser,
    _files: FilesServer,
    pub(crate) proxy: ProxyHandle,
    pub(crate) private: Arc<PrivateDirectory>,
}

impl BrowserLauncher {
    /// Tests whether Chromium's sandbox can start inside lango's.
    pub(crate) async fn check_chromium_sandbox(&self) -> Result<ChromiumSandbox, BrowserError> {
        match self.sandbox.check_nesting().await {
            Ok(()) => Ok(ChromiumSandbox::On),
            Err(LaunchError::NoNesting { .. }) => Ok(ChromiumSandbox::Off),
            Err(error) => Err(not_started(error_chain(&error))),
        }
    }

    /// Starts a browser. Its requests are charged to `budget` until another budget is set.
    pub(crate) async fn start(
        &self,
        chromium_sandbox: ChromiumSandbox,
        budget: Budget,
    ) -> Result<StartedBrowser, BrowserError> {
        let starting = self.start_unlimited(chromium_sandbox, budget);
        let starting = tokio::time::timeout(START_TIMEOUT, starting);
        let seconds = START_TIMEOUT.as_secs();
        let late = || not_started(format!("it took longer than {seconds} s"));
        starting.await.unwrap_or_else(|_| Err(late()))
    }

    async fn start_unlimited(
        &self,
        chromium_sandbox: ChromiumSandbox,
        budget: Budget,
    ) -> Result<StartedBrowser, BrowserError> {
        let private = PrivateDirectory::create(&self.directory).map_err(not_started)?;
        let private = Arc::new(private);
        let mut child = self
            .sandbox
            .spawn(
                &self.policy(&private),
                self.command(&private, chromium_sandbox),
            )
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
        let (service, reader, writer) = process::watch(child, Arc::clone(&private))?;
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

    fn command(&self, private: &PrivateDirectory, chromium_sandbox: ChromiumSandbox) -> Command {
        let mut argv = vec!["sh".into(), "-c".into(), PIPE_SCRIPT.into()];
        argv.push(self.program.path().into());
        argv.extend(flags::flags(&private.profile(), chromium_sandbox));
        let mut command = Command::new(argv, private.path().to_owned());
        command.env = flags::environment(private.path());
        command.stdin = Stdin::Piped;
        command.profile = SandboxProfile::Browser;
        command.new_files = NewFiles::Report;
        command.limits = limits();
        command
    }
}

/// Returns the resource limits of a browser. It has many threads, and each counts as a process.
fn limits() -> ResourceLimits {
    const GIB: u64 = 1 << 30;
    ResourceLimits {
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
