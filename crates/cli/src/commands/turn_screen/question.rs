//! Questions during a turn, and everything else that takes the terminal for a while: a pager, an editor, the shell.

use super::{ScreenAction, TurnScreen, title_working};
use crate::commands::ask::{PromptStep, Question, QuestionPrompt, Reply, ask_plainly};
use crate::screen::{self, QuestionEnd, columns, rows};
use crate::terminal::{
    Key, KeyReader, LineReader, LineSource, LiveFrame, Output, PageEnd, Region, ScreenMode, page,
    suspend_process,
};
use lango::app::signals::{StopSignal, StopSignals};
use lango_core::ApprovalRequest;
use std::io;
use tokio::sync::oneshot;

impl TurnScreen<'_> {
    /// Returns the next key that was typed before a question appears, and is no answer to it.
    pub(in crate::commands) fn typed_key(&mut self) -> Option<Key> {
        self.keys.as_mut().and_then(KeyReader::try_next)
    }

    /// Notes a question that was pending before the turn continued.
    pub(in crate::commands) fn add_pending(&mut self, request: &ApprovalRequest) {
        self.activity.add_request(request);
    }

    /// Shows a question. Its box stays on the screen; the keys that answer it are below.
    pub(in crate::commands) async fn ask(
        &mut self,
        question: Question,
        mut reply: oneshot::Sender<Reply>,
    ) -> io::Result<()> {
        if let Some(answer) = &mut self.answer {
            answer.interrupt()?;
        }
        if self.display.screen == ScreenMode::Plain {
            let lines = self
                .lines
                .get_or_insert_with(|| LineReader::open(LineSource::Terminal));
            let mut signals = StopSignals::listen()?;
            let given = tokio::select! {
                given = ask_plainly(&question, lines) => given,
                // Another process has answered.
                () = reply.closed() => return Ok(()),
                signal = signals.next() => match signal {
                    StopSignal::Interrupt => Reply::Stop,
                    StopSignal::Terminate => Reply::Wait,
                },
            };
            let _ = reply.send(given);
            return Ok(());
        }
        if !Region::is_open() {
            Region::open(Output::Stderr);
        }
        if self.keys.is_none() {
            *self.keys = Some(KeyReader::open_fresh()?);
        }
        let question = if self.input.is_some() {
            question
        } else {
            question.without_modes()
        };
        let mut prompt = QuestionPrompt::new(question);
        self.print_box(&mut prompt)?;
        Region::send("\u{7}");
        self.prompt = Some((prompt, reply));
        self.is_dirty = true;
        self.draw()
    }

    fn print_box(&mut self, prompt: &mut QuestionPrompt) -> io::Result<()> {
        let (text, _) = self.fit_box(prompt);
        self.box_columns = text.lines().map(screen::columns_of).collect();
        self.lowest_room = usize::MAX;
        let text = screen::colour_request(&text, &self.palette);
        // The live part, which may be high, would push the box off the screen.
        Region::draw(&LiveFrame::default())?;
        Region::print(self.display.progress, &format!("{text}\n"))
    }

    /// Returns the number of rows that the printed box has in a window of this width: it wraps what became too long.
    fn box_rows(&self) -> usize {
        let rows = self.box_columns.iter();
        rows.map(|row| row.div_ceil(columns()).max(1)).sum()
    }

    /// Returns the box, as long as the window allows, and the room for it. The keys share their rows before the box is
    /// shortened.
    fn fit_box(&mut self, prompt: &mut QuestionPrompt) -> (String, usize) {
        let (mut text, mut room) = (String::new(), 0);
        for is_compact in [false, true] {
            prompt.set_compact(is_compact);
            room = rows().saturating_sub(self.rows_below_box(prompt));
            text = prompt.question.text(columns(), room);
            prompt.set_cut(text.lines().count() > room || is_too_narrow());
            if text == prompt.question.text(columns(), usize::MAX) {
                break;
            }
        }
        (text, room)
    }

    /// Returns the number of rows that the keys of a question need, with the row about other agents, the input and the
    /// status.
    fn rows_below_box(&mut self, prompt: &QuestionPrompt) -> usize {
        let (keys, _) = prompt.rows(columns(), 0, &self.palette);
        let mut input = LiveFrame::default();
        if let Some(it) = &mut self.input {
            it.push_waiting_in_brief(&mut input, columns(), &self.palette);
            it.push_message(&mut input, columns(), &self.palette);
        }
        keys.len() + input.rows.len().max(1) + 2
    }

    /// Notes how much room the live part leaves for the box. If the box was pushed off the screen, by a message that the
    /// user writes or by a smaller window, no key allows the call; when there is room again, prints the box again and
    /// returns true.
    pub(super) fn keep_box_in_view(&mut self, live_rows: usize) -> io::Result<bool> {
        let room = rows().saturating_sub(live_rows);
        self.lowest_room = self.lowest_room.min(room);
        let is_cut = self.lowest_room < self.box_rows() || is_too_narrow();
        let is_writing = self.is_writing();
        let Some((mut prompt, reply)) = self.prompt.take() else {
            return Ok(false);
        };
        // A row about other agents that comes and goes does not print the box each time.
        let fits_again =
            is_cut && !is_writing && self.fit_box(&mut prompt).0.lines().count() < room;
        prompt.set_cut(is_cut);
        self.prompt = Some((prompt, reply));
        if fits_again {
            self.print_box_again()?;
        }
        Ok(fits_again)
    }

    /// Prints the box again if the window is higher now and a longer preview fits. Terminals do not always move lines back
    /// from the scrollback.
    pub(super) fn enlarge_box(&mut self) -> io::Result<()> {
        let Some((mut prompt, reply)) = self.prompt.take() else {
            return Ok(());
        };
        let (text, room) = self.fit_box(&mut prompt);
        let needed = text.lines().count();
        self.prompt = Some((prompt, reply));
        if self.lowest_room < needed && needed <= room {
            self.print_box_again()?;
        }
        self.draw()
    }

    fn print_box_again(&mut self) -> io::Result<()> {
        let Some((mut prompt, reply)) = self.prompt.take() else {
            return Ok(());
        };
        let printed = self.print_box(&mut prompt);
        self.prompt = Some((prompt, reply));
        printed
    }

    /// Offers a key to the question. Returns what to do, or `None` if the key is not for it.
    pub(super) fn handle_at_question(&mut self, key: &Key) -> io::Result<Option<ScreenAction>> {
        let is_writing = self.is_writing();
        let Some((prompt, _)) = &mut self.prompt else {
            return Ok(None);
        };
        let step = prompt.handle(key, is_writing);
        self.perform(step)
    }

    /// Answers the question with the last key.
    pub(in crate::commands) fn settle_answer(&mut self) -> io::Result<ScreenAction> {
        let Some((prompt, _)) = &mut self.prompt else {
            return Ok(ScreenAction::Continue);
        };
        self.is_dirty = true;
        let step = prompt.settle();
        Ok(self.perform(step)?.unwrap_or(ScreenAction::Continue))
    }

    fn perform(&mut self, step: PromptStep) -> io::Result<Option<ScreenAction>> {
        match step {
            PromptStep::NotMine(before) => {
                if let Some(input) = self.input.as_mut().filter(|_| !before.is_empty()) {
                    input.handle(&Key::Paste(before));
                }
                return Ok(None);
            }
            PromptStep::Handled => {}
            PromptStep::View => return Ok(Some(ScreenAction::View)),
            PromptStep::Reply(reply) => self.answer_question(reply)?,
        }
        Ok(Some(ScreenAction::Continue))
    }

    /// Shows that the turn is being stopped.
    pub(in crate::commands) fn show_stopping(&mut self) {
        self.is_stopping = true;
        self.is_dirty = true;
    }

    /// Whether a question waits for the user.
    pub(in crate::commands) fn is_asking(&self) -> bool {
        self.prompt.is_some()
    }

    /// Removes the question, because another process has answered it, or because the turn ends.
    pub(in crate::commands) fn withdraw_question(&mut self) -> io::Result<()> {
        self.close_question(if self.is_stopping {
            QuestionEnd::Stopped
        } else {
            QuestionEnd::AnsweredElsewhere
        })?;
        self.is_dirty = true;
        title_working(self.activity);
        self.show_held_updates()
    }

    /// Takes the question off the screen, and prints the line that closes its box.
    fn close_question(&mut self, end: QuestionEnd) -> io::Result<()> {
        let Some((prompt, _)) = self.prompt.take() else {
            return Ok(());
        };
        let line = self.activity.closing_line(prompt.question.id(), end);
        self.print_line(&line)?;
        // What goes on to be typed would otherwise be sent without its beginning.
        if let (Some(text), Some(input)) = (prompt.into_written(), &mut self.input) {
            input.handle(&Key::Paste(text));
            input.notify("the question was answered; your text is here and was not sent");
        }
        Ok(())
    }

    /// Answers the question. Until [`resume`](Self::resume) the terminal belongs to the prompts that may follow.
    pub(in crate::commands) fn answer_question(&mut self, reply: Reply) -> io::Result<()> {
        let Some((prompt, sender)) = self.prompt.take() else {
            return Ok(());
        };
        let end = match &reply {
            Reply::Answered(answer) => QuestionEnd::Answered(answer.clone()),
            Reply::Stop => QuestionEnd::Stopped,
            Reply::Wait => QuestionEnd::Postponed,
        };
        let line = self.activity.closing_line(prompt.question.id(), end);
        let printed = self.print_line(&line);
        match (&mut self.keys, &self.input) {
            (Some(keys), Some(_)) => keys.pause(),
            (keys, _) => **keys = None,
        }
        Region::close();
        self.is_suspended = true;
        let _ = sender.send(reply);
        printed
    }

    /// Leaves the question unanswered, because nobody can see it any more.
    pub(in crate::commands) fn abandon_question(&mut self) {
        self.prompt = None;
    }

    /// Uses the terminal again after an answer.
    pub(in crate::commands) fn resume(&mut self) -> io::Result<()> {
        if !self.is_suspended {
            return Ok(());
        }
        self.is_suspended = false;
        self.is_dirty = true;
        if self.display.screen == ScreenMode::Live && !self.display.is_quiet {
            Region::open(self.display.progress);
        }
        if self.input.is_some() {
            match &mut self.keys {
                Some(keys) => keys.resume()?,
                keys => **keys = Some(KeyReader::open()?),
            }
        }
        title_working(self.activity);
        self.show_held_updates()
    }

    /// Shows everything about the pending call in a pager.
    pub(in crate::commands) async fn view(&mut self) -> io::Result<()> {
        let (Some((prompt, _)), Some(keys)) = (&self.prompt, self.keys.as_mut()) else {
            return Ok(());
        };
        let question = &prompt.question;
        let palette = &self.palette;
        let lines = |width: usize| {
            let text = screen::colour_request(&question.full_text(width), palette);
            text.lines().map(str::to_owned).collect()
        };
        let end = page(keys, "the whole call", lines).await?;
        if let (Some((prompt, _)), PageEnd::Shown, false) = (&mut self.prompt, end, is_too_narrow())
        {
            prompt.set_viewed();
        }
        // The size may have changed meanwhile.
        if let Some(answer) = &mut self.answer {
            answer.resize(columns());
        }
        Region::redraw()?;
        self.enlarge_box()
    }

    /// Draws everything again after another program has used the screen. Keys answer only after a pause.
    pub(super) fn return_from_outside(&mut self) -> io::Result<()> {
        if let Some((prompt, _)) = &mut self.prompt {
            prompt.disarm();
        }
        if let Some(answer) = &mut self.answer {
            answer.resize(columns());
        }
        self.is_dirty = true;
        self.print_box_again()?;
        self.draw()
    }

    /// Lets the user write the message in an editor.
    pub(in crate::commands) async fn edit(&mut self) -> io::Result<()> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        *self.keys = None;
        Region::close();
        input.edit_outside().await;
        Region::open(self.display.progress);
        *self.keys = Some(KeyReader::open()?);
        self.return_from_outside()
    }

    /// Stops this process until the shell continues it. Running commands of agents go on.
    pub(in crate::commands) fn suspend(&mut self) -> io::Result<()> {
        let has_keys = self.keys.take().is_some();
        let is_live = Region::is_open();
        Region::close();
        suspend_process();
        if is_live {
            Region::open(self.display.progress);
        }
        if has_keys {
            *self.keys = Some(KeyReader::open()?);
        }
        self.return_from_outside()
    }
}

/// Whether the window is narrower than what rows are wrapped for, so that the terminal breaks or cuts them.
fn is_too_narrow() -> bool {
    screen::window().0 < columns()
}
