//! The checks of a server's command before a start, and the files that the user trusts.

use super::Server;
use crate::error::{ConnectError, ConnectFailure};
use crate::pins::PinError;
use crate::program::{PendingFile, ServerCommand, TrustedFiles};
use crate::settings::ServerTarget;

impl Server {
    /// Checks whether the server may be started as configured.
    pub(crate) fn check_command(&self) -> Result<(), ConnectError> {
        match self.command() {
            Some(command) => command.check(&self.trusted_files()),
            None => Ok(()),
        }
    }

    /// Returns the files of the command that the user must trust before the server starts.
    pub(crate) fn pending_files(&self) -> Result<Vec<PendingFile>, ConnectError> {
        match self.command() {
            Some(command) => command.pending_files(&self.trusted_files()),
            None => Ok(Vec::new()),
        }
    }

    /// Trusts files with the content that the user saw.
    pub(crate) fn trust_files(&self, seen: &[PendingFile]) -> Result<(), PinError> {
        if let Some(command) = self.command() {
            for file in seen {
                // If the copy fails, a later change is shown only by its digest.
                let _ = command.store(file);
            }
        }
        self.context.pins.trust_files(self.id(), seen)
    }

    /// Returns hints about the command that apply whether or not the server starts.
    pub(crate) fn hints(&self) -> Vec<String> {
        let command = self.command();
        command.map_or_else(Vec::new, |command| command.hints(false))
    }

    /// Adds a hint to the failure if the command seems to expect the workspace as its working directory.
    pub(super) fn with_hint(&self, failure: ConnectFailure) -> ConnectFailure {
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
        ConnectFailure {
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

    /// Returns the trusted files of this server; none if the pins cannot be read.
    pub(super) fn trusted_files(&self) -> TrustedFiles {
        let book = self.context.pins.read();
        book.map(|book| book.trusted_files(self.id()))
            .unwrap_or_default()
    }

    fn command(&self) -> Option<ServerCommand<'_>> {
        match &self.settings.target {
            ServerTarget::Program(program) => Some(ServerCommand {
                server: self.id(),
                program,
            }),
            ServerTarget::Http(_) => None,
        }
    }
}
