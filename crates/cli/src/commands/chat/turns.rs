//! Runs the turns of a chat and shows them.

use super::Chat;
use crate::commands::ask::ApprovalMode;
use crate::commands::present::describe_pending;
use crate::commands::turn_screen::{ActivityDetail, TurnDisplay, TurnScreen, title};
use crate::commands::watch::{
    PromptContext, TurnRequest, TypedCommand, WatchError, WatchedTurn, watch,
};
use crate::screen::{self, footer};
use crate::terminal::{KeyReader, Output, Region, ScreenMode, wrap_prefixed};
use lango::app::{Failure, FailureKind};
use lango_core::Outcome;
use lango_core::text::sanitize;
use lango_engine::{Conversation, RunnerError, TurnEnd};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

impl Chat<'_> {
    /// Resumes an interrupted turn and asks for pending approvals. The session cannot start another turn before that.
    pub(super) async fn finish_pending_turn(&mut self) -> Result<(), Failure> {
        if let Err(error) = refresh_if_pending(&mut self.conversation).await {
            screen::say(&format!("error: {}", Failure::from(error)));
            return Ok(());
        }
        match (
            self.conversation.is_interrupted(),
            self.conversation.waiting(),
        ) {
            (false, []) => return Ok(()),
            (false, _) => screen::say("this session waits for your answer"),
            // The first stored event tells the user that the turn is resumed.
            (true, _) => {}
        }
        self.run_turn(TurnRequest::Continue, None).await?;
        Ok(())
    }

    /// Runs a turn and shows it. Errors are printed and the chat continues; only a termination signal ends it. Returns
    /// whether the turn has started, so that its message is in the log.
    pub(super) async fn run_turn(
        &mut self,
        request: TurnRequest<'_>,
        typed_command: Option<&TypedCommand>,
    ) -> Result<bool, Failure> {
        // It may change files that an undo would restore.
        self.offered_undo = None;
        let started = Instant::now();
        let watched = self.watch_turn(request, typed_command).await;
        self.restore_screen()?;
        match watched {
            Ok(watched) => {
                self.show_end(watched.end, started, typed_command.is_some())?;
                Ok(true)
            }
            Err(error) if error.failure.kind == FailureKind::Terminated => Err(error.failure),
            Err(error) => {
                screen::say(&format!("error: {}", error.failure));
                if error.has_started {
                    self.input.return_queued();
                }
                Ok(error.has_started)
            }
        }
    }

    async fn watch_turn(
        &mut self,
        request: TurnRequest<'_>,
        typed_command: Option<&TypedCommand>,
    ) -> Result<WatchedTurn, WatchError> {
        let display = TurnDisplay {
            screen: self.screen,
            progress: Output::Stdout,
            is_quiet: false,
            prints_events: false,
            streams_answer: true,
            opening: None,
            detail: if typed_command.is_some() {
                ActivityDetail::Calls
            } else {
                ActivityDetail::Everything
            },
        };
        title("◐ lango");
        let (folder, vaults) = (self.app.folder(), Arc::clone(&self.app.vaults));
        let permission_mode = self.app.mode.clone();
        let context = PromptContext {
            folder: &folder,
            vaults: &vaults,
            // On a plain screen, a pasted line looks like a typed one.
            typed_command: typed_command.filter(|_| self.screen == ScreenMode::Live),
            mode: &permission_mode,
        };
        let is_live = self.screen == ScreenMode::Live;
        // Two readers of one terminal would take each other's lines.
        let answers = if std::io::stdin().is_terminal() {
            &mut self.lines
        } else {
            &mut self.answers
        };
        let view = TurnScreen::new(
            display,
            &mut self.activity,
            self.palette.clone(),
            &mut self.keys,
            answers,
            is_live.then_some(&mut self.input),
        );
        let mode = ApprovalMode::detect(match self.screen {
            ScreenMode::Live => Output::Stdout,
            ScreenMode::Plain => Output::Stderr,
        });
        watch(&mut self.conversation, request, mode, context, view).await
    }

    /// Prints how a turn ended.
    fn show_end(
        &mut self,
        end: TurnEnd,
        started: Instant,
        is_typed_command: bool,
    ) -> Result<(), Failure> {
        let report = match end {
            TurnEnd::Finished(report) => report,
            TurnEnd::Waiting(waiting) if waiting.is_empty() => return Ok(()),
            TurnEnd::Waiting(waiting) => {
                self.input.return_queued();
                return Ok(screen::write_line(&describe_pending(&waiting))?);
            }
        };
        self.was_key_refused = is_key_fault(&report.outcome);
        if report.outcome == Outcome::Cancelled {
            self.input.return_queued();
        }
        // A command of the user costs nothing, and its line says how it ended.
        if is_typed_command
            && matches!(
                report.outcome,
                Outcome::Answered { .. } | Outcome::Cancelled
            )
        {
            return Ok(());
        }
        let model = self.model.name();
        let model = report.model.as_deref().unwrap_or(model);
        let author = report.author.as_ref();
        let author = author
            .map(|author| format!("{author} · "))
            .unwrap_or_default();
        let footer = footer(&report, model, started.elapsed());
        let footer = sanitize(&footer);
        let lines = wrap_prefixed(&format!("{author}{footer}"), "  ", "  ", screen::columns());
        let lines: Vec<String> = lines.iter().map(|line| self.palette.dim(line)).collect();
        Ok(screen::print_rendered(&format!("\n{}", lines.join("\n")))?)
    }

    /// Opens the keyboard and the region again if a turn that failed has left them closed.
    fn restore_screen(&mut self) -> Result<(), Failure> {
        if self.screen == ScreenMode::Live {
            match &mut self.keys {
                Some(keys) => keys.resume()?,
                keys => *keys = Some(KeyReader::open()?),
            }
            if !Region::is_open() {
                Region::open(Output::Stdout);
            }
        }
        Ok(())
    }
}

/// Reads the session again if a turn was pending: another process may have finished it.
async fn refresh_if_pending(conversation: &mut Conversation) -> Result<(), RunnerError> {
    if conversation.is_interrupted() || !conversation.waiting().is_empty() {
        conversation.refresh().await
    } else {
        Ok(())
    }
}

/// Whether a turn failed because the model's key was refused or could not be read.
fn is_key_fault(outcome: &Outcome) -> bool {
    let Outcome::Failed { fault, .. } = outcome else {
        return false;
    };
    matches!(fault.as_deref(), Some("bad_key" | "no_key"))
}
