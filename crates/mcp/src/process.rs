//! The program of a server: started inside the sandbox, without a time limit.

use crate::error::ConnectError;
use crate::program::{PreparedCommand, ServerCommand};
use crate::program_proxy::{ProgramProxy, RunningProxy};
use lango_core::error_chain;
use lango_sandbox::{Command, Launcher, Service, Stdin};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::process::{ChildStdin, ChildStdout};

/// Time for a program to end by itself once its input is closed.
const GRACE: Duration = Duration::from_millis(500);
/// Time for a killed program to be gone.
const KILL_TIME: Duration = Duration::from_secs(5);

/// A running program. Dropping it ends the program and everything that it started.
#[derive(Debug)]
pub(crate) struct Process {
    service: Service,
    pub(crate) proxy: Option<RunningProxy>,
}

/// Files that appeared while a server ran and that decide what other programs do, such as `.git`: those of all its
/// processes, also of those that failed, until they are reported.
#[derive(Debug, Default)]
pub(crate) struct NewFiles {
    paths: Mutex<BTreeSet<PathBuf>>,
}

impl NewFiles {
    /// Takes what was not reported yet.
    pub(crate) fn take(&self) -> BTreeSet<PathBuf> {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *paths)
    }

    /// Adds files, but those in the server's private directory, which no other program obeys.
    fn outside_of(self: Arc<Self>, private: PathBuf) -> impl FnOnce(&[PathBuf]) + Send + 'static {
        move |found| {
            let found = found.iter().filter(|path| !path.starts_with(&private));
            let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
            paths.extend(found.cloned());
        }
    }
}

impl Process {
    /// Starts it; gives its input and output besides.
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
            policy.kept.push(secrets.certificates.clone());
        }
        let env = env.into_iter();
        command.env = env
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        command.stdin = Stdin::Piped;
        command.limits = program.limits;
        command.limits.time = None;
        // Whoever works in the folder meanwhile makes such files too.
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
        let new_files = Arc::clone(new_files).outside_of(private.clone());
        let service = child.into_service(move |ended| {
            if let Some(ended) = ended {
                new_files(&ended.clean_up.left);
            }
        });
        let (service, stdin, stdout) = service.map_err(|error| not_started(error.to_string()))?;
        Ok((Self { service, proxy }, stdin, stdout))
    }

    /// Waits for the end and describes it; `None` if the program still runs after `time`.
    pub(crate) async fn end_within(&self, time: Duration) -> Option<String> {
        self.service.end_within(time).await
    }

    /// Ends the program: kills it unless it ends by itself within a moment.
    pub(crate) async fn end(&self) {
        if self.end_within(GRACE).await.is_some() {
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
