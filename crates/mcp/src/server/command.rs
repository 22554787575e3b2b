//! What a server's command may run: the checks before a start, and the files that the user trusts.

use super::Server;
use crate::error::{ConnectError, Failure};
use crate::pins::PinError;
use crate::program::{PendingFile, ServerCommand, TrustedFiles};
use crate::settings::Reach;

impl Server {
    /// Says why the server must not be started as it is configured.
    pub(crate) fn check_command(&self) -> Result<(), ConnectError> {
        match self.command() {
            Some(command) => command.check(&self.trusted_files()),
            None => Ok(()),
        }
    }

    /// The files of the command that have to be trusted before the server starts.
    pub(crate) fn pending_files(&self) -> Result<Vec<PendingFile>, ConnectError> {
        match self.command() {
            Some(command) => command.pending_files(&self.trusted_files()),
            None => Ok(Vec::new()),
        }
    }

    /// Trusts files as they were seen.
    pub(crate) fn trust_files(&self, seen: &[PendingFile]) -> Result<(), PinError> {
        if let Some(command) = self.command() {
            for file in seen {
                // Without the copy a later change is shown by its digest alone.
                let _ = command.store(file);
            }
        }
        self.surroundings.pins.trust_files(self.id(), seen)
    }

    /// What the user should write differently, whatever the server does.
    pub(crate) fn hints(&self) -> Vec<String> {
        let command = self.command();
        command.map_or_else(Vec::new, |command| command.hints(false))
    }

    /// The failure, with what the user should write instead if the command relies on the workspace as its directory.
    pub(super) fn with_hint(&self, failure: Failure) -> Failure {
        let hints = self.command().map(|command| command.hints(true));
        let Some(hint) = hints.filter(|hints| !hints.is_empty()) else {
            return failure;
        };
        let is_about_start = matches!(
            failure.error,
            ConnectError::NotStarted { .. }
                | ConnectError::Silent { .. }
                | ConnectError::Broken { .. }
        );
        if !is_about_start {
            return failure;
        }
        Failure {
            error: ConnectError::Hinted {
                error: Box::new(failure.error),
                hint: hint.join("; "),
            },
            stderr: failure.stderr,
        }
    }

    /// Returns whether the command downloads packages.
    pub(super) fn downloads_packages(&self) -> bool {
        let command = self.command();
        command.is_some_and(|command| command.downloads_packages())
    }

    /// What is trusted of this server; pins that cannot be read trust nothing.
    pub(super) fn trusted_files(&self) -> TrustedFiles {
        let book = self.surroundings.pins.read();
        book.map(|book| book.trusted_files(self.id()))
            .unwrap_or_default()
    }

    fn command(&self) -> Option<ServerCommand<'_>> {
        match &self.settings.reach {
            Reach::Program(program) => Some(ServerCommand {
                server: self.id(),
                program,
            }),
            Reach::Address(_) => None,
        }
    }
}
