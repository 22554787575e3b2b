//! Shows the updates of a turn: lines for what has happened, and the text of the answer.

use super::TurnScreen;
use crate::commands::streamed_answer::StreamedAnswer;
use crate::screen::{self, Layout, columns};
use crate::terminal::{Output, Region, ScreenMode, wrap_prefixed};
use lango_core::{Event, EventBody};
use lango_engine::TurnUpdate;
use std::io;

impl TurnScreen<'_> {
    /// Shows an update.
    pub(in crate::commands) fn update(&mut self, update: TurnUpdate) -> io::Result<()> {
        self.is_dirty = true;
        if let (TurnUpdate::Stored(_), Some(opening)) = (&update, self.display.opening.take()) {
            self.print_line(opening)?;
        }
        let is_held = self.prompt.is_some() || self.is_suspended;
        if !is_held || !Output::Stdout.is_terminal() {
            self.print_events(&update)?;
        }
        let lines = if self.shows_only_calls() {
            self.activity.update_calls(&update)
        } else {
            self.activity.update(&update)
        };
        if is_held {
            if is_text(&update) || !lines.is_empty() {
                self.held_updates.push((update, lines));
            }
            return Ok(());
        }
        self.show(&update, lines)
    }

    /// Prints events as lines of JSON, if the command wants them.
    fn print_events(&self, update: &TurnUpdate) -> io::Result<()> {
        let TurnUpdate::Stored(events) = update else {
            return Ok(());
        };
        let events = events.iter().filter(|_| self.display.prints_events);
        for event in events {
            screen::write_line(&screen::json(event, Layout::Line)?)?;
        }
        Ok(())
    }

    /// Shows an update as text of the answer or as lines.
    fn show(&mut self, update: &TurnUpdate, lines: Vec<String>) -> io::Result<()> {
        self.show_text(update)?;
        if self.display.is_quiet {
            return Ok(());
        }
        let is_answer_shown = self.answer.as_ref().is_some_and(StreamedAnswer::is_shown);
        if ends_turn(update) && is_answer_shown {
            self.last_lines.extend(lines);
            return Ok(());
        }
        lines.iter().try_for_each(|line| self.show_line(line))
    }

    /// Shows the part of the answer, or of what an agent said before its calls, that an update contains.
    fn show_text(&mut self, update: &TurnUpdate) -> io::Result<()> {
        let Some(answer) = &mut self.answer else {
            return Ok(());
        };
        match update {
            TurnUpdate::Draft { text, .. } => {
                answer.push(text)?;
                match self.display.screen {
                    // Rendered with the next frame.
                    ScreenMode::Live => Ok(()),
                    ScreenMode::Plain => answer.render(),
                }
            }
            TurnUpdate::DraftWithdrawn => {
                answer.withdraw();
                Ok(())
            }
            TurnUpdate::Stored(events) => {
                let mut texts = events.iter().filter_map(text_before_calls);
                texts.try_for_each(|text| answer.said(text))
            }
            _ => Ok(()),
        }
    }

    /// Shows what happened while a question was open.
    pub(super) fn show_held_updates(&mut self) -> io::Result<()> {
        for (update, lines) in std::mem::take(&mut self.held_updates) {
            // Anything else than the terminal has them already.
            if Output::Stdout.is_terminal() {
                self.print_events(&update)?;
            }
            self.show(&update, lines)?;
        }
        Ok(())
    }

    pub(super) fn show_line(&mut self, line: &str) -> io::Result<()> {
        if let Some(answer) = &mut self.answer {
            answer.interrupt()?;
        }
        self.print_line(line)
    }

    /// Prints a line of progress; on a live screen wrapped at words.
    pub(super) fn print_line(&self, line: &str) -> io::Result<()> {
        let text = match self.display.screen {
            ScreenMode::Live => wrap_prefixed(line, "", "    ", columns()).join("\n"),
            ScreenMode::Plain => line.to_owned(),
        };
        Region::print(self.display.progress, &format!("{text}\n"))
    }
}

/// Whether an update contains events or text, and not only the progress of what the live part shows.
fn is_text(update: &TurnUpdate) -> bool {
    matches!(
        update,
        TurnUpdate::Stored(_) | TurnUpdate::Draft { .. } | TurnUpdate::DraftWithdrawn
    )
}

/// Whether an update contains the end of the turn.
fn ends_turn(update: &TurnUpdate) -> bool {
    let is_end = |event: &Event| matches!(event.body, EventBody::TurnFinished { .. });
    matches!(update, TurnUpdate::Stored(events) if events.iter().any(is_end))
}

/// Returns what the root agent said before its calls.
fn text_before_calls(event: &Event) -> Option<&str> {
    match &event.body {
        EventBody::AgentMessage { text, calls, .. }
            if event.frame.is_root() && !calls.is_empty() && !text.trim().is_empty() =>
        {
            Some(text)
        }
        _ => None,
    }
}
