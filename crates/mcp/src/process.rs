//! The program of a server, which runs in the sandbox without a time limit.

use crate::error::ConnectError;
use crate::program::{PreparedCommand, ServerCommand};
use crate::program_proxy::{ProgramProxy, RunningProxy};
use lango_core::error_chain;
use lango_sandbox::{Command, Launcher, SandboxedService, Stdin};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::process::{ChildStdin, ChildStdout};

/// How long a program may take to exit after its input is closed.
const GRACE_PERIOD: Duration = Duration::from_millis(500);
/// How long to wait for a killed program to exit.
const KILL_TIME: Duration = Duration::from_secs(5);

/// A running program. Dropping it kills the program and everything that it started.
#[derive(Debug)]
pub(crate) struct Process {
    service: SandboxedService,
    pub(crate) proxy: Option<RunningProxy>,
}

/// The protected files (files that influence other programs, such as `.git`) that are new. Collects the new files of
/// all processes of a server, including failed ones, until they are reported.
#[derive(Debug, Default)]
pub(crate) struct NewFiles {
    paths: Mutex<BTreeSet<PathBuf>>,
}

impl NewFiles {
    /// Removes and returns the files that were not reported yet.
    pub(crate) fn take(&self) -> BTreeSet<PathBuf> {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *paths)
    }

    /// Returns a function that adds files, except for those in the server's private directory, which influence no other
    /// program.
    fn recorder_outside(
        self: Arc<Self>,
        private: PathBuf,
    ) -> impl FnOnce(&[PathBuf]) + Send + 'static {
        move |found| {
            let found = found.iter().filter(|path| !path.starts_with(&private));
            let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
            paths.extend(found.cloned());
        }
    }
}

impl Process {
    /// Starts a program. Returns it with its stdin and stdout.
    pub(crate) async fn start(
        launcher: &Launcher,
        ServerCommand { server, program }: ServerCommand<'_>,
        prepared: PreparedCommand,
        new_files: &Arc<NewFiles>,
    ) -> Result<(Self, ChildStdin, ChildStdout), ConnectError> {
        let private = &program.policy.workspace;
        let mut policy = program.policy.clone();
        let mut command = Command::new(&prepared.argv, private.clone());
        let mut env = prepared.env;
        let mut secrets = None;
        if let Some(proxy) = &program.proxy {
            env.extend(ProgramProxy::variables());
            secrets = proxy.prepare(server).await?;
        }
        if let Some(secrets) = &secrets {
            env.extend(secrets.variables.iter().cloned());
            policy.read.push(secrets.certificates.clone());
            policy.read_only.push(secrets.certificates.clone());
        }
        let env = env.into_iter();
        command.env = env
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        command.stdin = Stdin::Piped;
        command.limits = program.limits;
        command.limits.time = None;
        // Report new protected files rather than remove them: other programs may have created them.
        command.new_files = lango_sandbox::NewFiles::Report;
        let not_started = |why: String| ConnectError::NotStarted { why };
        let mut child = launcher
            .spawn(&policy, command)
            .map_err(|error| not_started(error_chain(&error)))?;
        let proxy = match &program.proxy {
            Some(proxy) => {
                let serving = proxy.serve(server, &mut child, secrets).await;
                Some(serving.map_err(|error| not_started(error_chain(&error)))?)
            }
            None => None,
        };
        let new_files = Arc::clone(new_files).recorder_outside(private.clone());
        let service = child.into_service(move |ended| {
            if let Some(ended) = ended {
                new_files(&ended.clean_up.remaining);
            }
        });
        let (service, stdin, stdout) = service.map_err(|error| not_started(error.to_string()))?;
        Ok((Self { service, proxy }, stdin, stdout))
    }

    /// Waits for the program to exit and describes its exit; `None` if it still runs after `time`.
    pub(crate) async fn end_within(&self, time: Duration) -> Option<String> {
        self.service.end_within(time).await
    }

    /// Stops the program: kills it unless it exits within the grace period.
    pub(crate) async fn end(&self) {
        if self.end_within(GRACE_PERIOD).await.is_some() {
            return;
        }
        self.service.kill();
        self.end_within(KILL_TIME).await;
    }

    /// Returns the end of the program's error output.
    pub(crate) fn error_output(&self) -> String {
        self.service.error_output()
    }
}
