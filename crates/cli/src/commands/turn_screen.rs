//! Shows a turn: lines for what has happened, and on a live screen what is running, the growing answer, the pending
//! question, and the message that the user types meanwhile.

mod question;
mod updates;

use super::ask::{QuestionPrompt, Reply};
use super::chat_input::{ChatInput, InputAction};
use super::streamed_answer::StreamedAnswer;
use crate::screen::{Activity, columns, rows};
use crate::terminal::{
    Key, KeyReader, LineReader, LiveFrame, Output, Palette, Region, ScreenMode, suspend_signal,
};
use lango_core::text::sanitize;
use lango_core::{ApprovalAnswer, PermissionMode};
use lango_engine::TurnUpdate;
use std::io;
use std::time::{Duration, Instant};
use tokio::signal::unix::Signal;
use tokio::sync::oneshot;

/// The time that each sign of the spinner is shown, and the shortest interval between two redraws.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);
const REDRAW_INTERVAL: Duration = Duration::from_millis(50);

/// The most rows of an answer that may still change. Rows that a narrower window wraps and thereby moves into the scrollback
/// cannot be cleared any more, so most of the window stays free.
const MAX_LIVE_ROWS: usize = 12;

/// How often a plain screen checks for slow steps.
const PLAIN_INTERVAL: Duration = Duration::from_secs(1);

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// A turn that ran longer than this rings the bell at its end.
const BELL_AFTER: Duration = Duration::from_secs(10);

/// What the command wants to see of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TurnDisplay {
    pub screen: ScreenMode,
    /// Where progress goes; the answer always goes to stdout.
    pub progress: Output,
    /// Whether progress is printed.
    pub is_quiet: bool,
    /// Whether every event is printed as a line of JSON on stdout.
    pub prints_events: bool,
    /// Whether the answer is shown while it arrives.
    pub streams_answer: bool,
    /// A line to print when the turn has started.
    pub opening: Option<&'static str>,
    pub detail: ActivityDetail,
}

/// Which lines of a turn are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActivityDetail {
    Everything,
    /// Only a line for each call: the user made them, and no agent decided anything. Their output is the answer.
    Calls,
}

impl TurnDisplay {
    /// Returns the attributes that progress may have.
    pub(super) fn palette(&self) -> Palette {
        match self.screen {
            ScreenMode::Live => Palette::for_terminal(),
            ScreenMode::Plain => Palette::plain(),
        }
    }
}

/// The screen of a turn.
pub(super) struct TurnScreen<'a> {
    display: TurnDisplay,
    activity: &'a mut Activity,
    palette: Palette,
    answer: Option<StreamedAnswer>,
    /// The keyboard; opened for a question if the user cannot type during the turn.
    keys: &'a mut Option<KeyReader>,
    /// The message that the user types meanwhile; `None` if the command takes no further messages.
    input: Option<&'a mut ChatInput>,
    /// Ctrl-Z while no keys are read, but rows are drawn that must not be left over.
    suspension: Option<Signal>,
    /// Reads answers if the screen is plain; opened for the first question.
    lines: &'a mut Option<LineReader>,
    prompt: Option<(QuestionPrompt, oneshot::Sender<Reply>)>,
    /// The columns of each row of the question's box, and the smallest room above the live part since it was printed.
    box_columns: Vec<usize>,
    lowest_room: usize,
    /// While a prompt of other code uses the terminal, nothing is drawn.
    is_suspended: bool,
    is_dirty: bool,
    last_drawn: Instant,
    is_stopping: bool,
    /// Updates that are shown after the question, with their lines: they would move it off the screen.
    held_updates: Vec<(TurnUpdate, Vec<String>)>,
    /// Lines about the end of the turn, which follow the streamed answer.
    last_lines: Vec<String>,
}

/// What the loop that shows a turn has to handle.
pub(super) enum ScreenEvent {
    Key(Key),
    Redraw,
    /// No other key has followed the one that answers the question.
    AnswerSettled,
    /// Another process has answered the question.
    QuestionWithdrawn,
    /// Ctrl-Z while no keys are read.
    SuspendRequested,
}

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScreenAction {
    Continue,
    /// Stop the turn.
    Stop,
    /// Show everything about the pending call.
    View,
    /// Write the message in the user's own editor.
    Edit,
    /// Stop the process until the shell continues it.
    Suspend,
}

impl<'a> TurnScreen<'a> {
    pub(super) fn new(
        display: TurnDisplay,
        activity: &'a mut Activity,
        palette: Palette,
        keys: &'a mut Option<KeyReader>,
        lines: &'a mut Option<LineReader>,
        input: Option<&'a mut ChatInput>,
    ) -> Self {
        activity.begin_turn();
        let is_live = display.screen == ScreenMode::Live;
        if is_live && !display.is_quiet && !Region::is_open() {
            Region::open(display.progress);
        }
        let answer = display.streams_answer.then(|| {
            let live_rows = if is_live {
                rows().saturating_sub(12).clamp(4, MAX_LIVE_ROWS)
            } else {
                1
            };
            StreamedAnswer::new(palette.markdown(), columns(), live_rows)
        });
        let reads_keys = input.is_some();
        let suspension = (is_live && !reads_keys).then(suspend_signal);
        Self {
            display,
            activity,
            palette,
            answer,
            keys,
            input,
            suspension: suspension.and_then(Result::ok),
            lines,
            prompt: None,
            box_columns: Vec::new(),
            lowest_room: 0,
            is_suspended: false,
            is_dirty: true,
            last_drawn: Instant::now() - REDRAW_INTERVAL,
            is_stopping: false,
            held_updates: Vec::new(),
            last_lines: Vec::new(),
        }
    }

    /// Waits for the next event of the screen; never returns if nothing is drawn and no keys are read.
    pub(super) async fn next_event(&mut self) -> ScreenEvent {
        let draws = self.is_live() || self.prints_slow_steps();
        let interval = match (self.is_live(), self.is_dirty) {
            (false, _) => PLAIN_INTERVAL,
            (true, true) => REDRAW_INTERVAL,
            (true, false) => SPINNER_INTERVAL,
        };
        let redraw = tokio::time::sleep(interval.saturating_sub(self.last_drawn.elapsed()));
        let keys = self.keys.as_mut().filter(|_| !self.is_suspended);
        let key = async {
            match keys {
                Some(keys) => keys.next().await,
                None => std::future::pending().await,
            }
        };
        let settles_at = self.prompt.as_ref().and_then(|(it, _)| it.settles_at());
        let settled = async {
            match settles_at {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let withdrawn = async {
            match &mut self.prompt {
                Some((_, reply)) => reply.closed().await,
                None => std::future::pending().await,
            }
        };
        let suspension = async {
            match &mut self.suspension {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = withdrawn => ScreenEvent::QuestionWithdrawn,
            _ = suspension => ScreenEvent::SuspendRequested,
            key = key => ScreenEvent::Key(key),
            () = settled => ScreenEvent::AnswerSettled,
            () = redraw, if draws => ScreenEvent::Redraw,
            else => std::future::pending().await,
        }
    }

    /// Draws the live part of the screen. A plain screen gets a line for each slow step instead.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        self.last_drawn = Instant::now();
        if self.prints_slow_steps() {
            for line in self.activity.slow_lines() {
                self.print_line(&line)?;
            }
        }
        if !self.is_live() {
            return Ok(());
        }
        self.is_dirty = false;
        let is_writing = self.is_writing();
        match (&mut self.prompt, &mut self.answer) {
            (Some((prompt, _)), _) => {
                if prompt.arm(is_writing) {
                    title("lango ? approve");
                }
            }
            (None, Some(answer)) => {
                answer.render()?;
                self.is_dirty = answer.is_behind();
            }
            (None, None) => {}
        }
        let frame = self.frame();
        if self.keep_box_in_view(frame.rows.len())? {
            let frame = self.frame();
            return Region::draw(&frame);
        }
        Region::draw(&frame)
    }

    /// Whether the user typed a command, of which only the call is shown.
    pub(super) fn shows_only_calls(&self) -> bool {
        self.display.detail == ActivityDetail::Calls
    }

    /// Whether the user is in the middle of a message.
    fn is_writing(&self) -> bool {
        self.input.as_ref().is_some_and(|input| input.is_writing())
    }

    fn is_live(&self) -> bool {
        Region::is_open() && !self.is_suspended
    }

    /// Whether to print a line for each slow step, because there is no live part that shows it.
    fn prints_slow_steps(&self) -> bool {
        self.display.screen == ScreenMode::Plain && !self.display.is_quiet && self.prompt.is_none()
    }

    fn frame(&mut self) -> LiveFrame {
        let columns = columns();
        let mut frame = LiveFrame::default();
        let spinner = {
            let turns = self.activity.elapsed().as_millis() / SPINNER_INTERVAL.as_millis();
            SPINNER[turns as usize % SPINNER.len()]
        };
        let is_armed = self
            .prompt
            .as_ref()
            .is_some_and(|(prompt, _)| prompt.is_armed());
        match &self.prompt {
            // Below its box, so that nothing stands between the two. What agents write meanwhile is not shown: it could
            // look like another box, or move this one off the screen.
            Some((prompt, _)) => {
                let others = self.activity.waiting().saturating_sub(1);
                let (rows, cursor) = prompt.rows(columns, others, &self.palette);
                frame.rows.extend(rows);
                frame.cursor = cursor;
                frame
                    .rows
                    .extend(self.activity.others_row(spinner, columns));
            }
            None => {
                if let Some(answer) = &mut self.answer {
                    frame.rows.extend(answer.live_rows());
                }
                let hint = match (self.is_stopping, self.input.is_some()) {
                    (true, _) => "stopping …",
                    (false, true) => "esc stops",
                    (false, false) => "ctrl-c stops",
                };
                frame
                    .rows
                    .extend(self.activity.rows(spinner, hint, columns));
            }
        }
        if let Some(input) = self.input.as_mut().filter(|_| frame.cursor.is_none()) {
            let is_asking = self.prompt.is_some();
            if is_asking {
                input.push_waiting_in_brief(&mut frame, columns, &self.palette);
            } else {
                input.push_waiting(&mut frame, columns, &self.palette);
            }
            // Keys answer the question, so no empty input invites to type.
            if !is_armed {
                input.push_message(&mut frame, columns, &self.palette);
            }
            input.push_status(&mut frame, columns, &self.palette);
        }
        frame
    }

    /// Handles a key.
    pub(super) fn handle(&mut self, key: Key) -> io::Result<ScreenAction> {
        self.is_dirty = true;
        match key {
            Key::Resize => {
                if let Some(answer) = &mut self.answer {
                    answer.resize(columns());
                }
                self.draw()?;
                self.enlarge_box()?;
                return Ok(ScreenAction::Continue);
            }
            Key::Resumed => {
                self.return_from_outside()?;
                return Ok(ScreenAction::Continue);
            }
            // The terminal is gone. A question can be answered later; nobody sees the rest of the turn.
            Key::Closed => {
                *self.keys = None;
                if self.prompt.is_none() {
                    return Ok(ScreenAction::Stop);
                }
                self.answer_question(Reply::Wait)?;
                return Ok(ScreenAction::Continue);
            }
            _ => {}
        }
        if let Some(action) = self.handle_at_question(&key)? {
            return Ok(action);
        }
        let Some(input) = &mut self.input else {
            return Ok(match key {
                Key::Ctrl('c') | Key::Escape => ScreenAction::Stop,
                Key::Ctrl('z') => ScreenAction::Suspend,
                _ => ScreenAction::Continue,
            });
        };
        let action = input.handle(&key);
        let is_switched = key == Key::BackTab && input.mode() == PermissionMode::AcceptEdits;
        if let (true, Some((prompt, _))) = (is_switched, &self.prompt)
            && prompt.is_answered_by_mode()
        {
            self.answer_question(Reply::Answered(ApprovalAnswer::Once))?;
            return Ok(ScreenAction::Continue);
        }
        Ok(match action {
            InputAction::None => ScreenAction::Continue,
            InputAction::Leave => {
                input.notify("esc stops the turn first; then ctrl-d leaves");
                ScreenAction::Continue
            }
            InputAction::Suspend => ScreenAction::Suspend,
            InputAction::Submit(message) => {
                input.queue(message);
                ScreenAction::Continue
            }
            InputAction::Cancel => ScreenAction::Stop,
            InputAction::ShowOutput if self.prompt.is_some() => {
                input.notify("answer the question first; then ctrl-o shows output");
                ScreenAction::Continue
            }
            InputAction::ShowOutput => {
                self.show_output()?;
                ScreenAction::Continue
            }
            InputAction::Edit => ScreenAction::Edit,
            // The box of a question must stay in view.
            InputAction::Clear if self.prompt.is_some() => ScreenAction::Continue,
            InputAction::Clear => {
                Region::clear()?;
                ScreenAction::Continue
            }
        })
    }

    fn show_output(&mut self) -> io::Result<()> {
        let text = self.activity.full_result();
        let text = text.unwrap_or_else(|| self.palette.dim("no more output of tools"));
        Region::print(self.display.progress, &format!("{text}\n"))
    }

    /// Ends the display: completes the streamed answer and removes the live part. Returns whether the answer is on the
    /// screen.
    pub(super) fn finish(&mut self, answer: Option<&str>) -> io::Result<bool> {
        self.show_held_updates()?;
        let is_shown = match (&mut self.answer, answer) {
            (Some(streamed), _) => {
                streamed.finish(answer)?;
                answer.is_some()
            }
            (None, _) => false,
        };
        for line in std::mem::take(&mut self.last_lines) {
            self.show_line(&line)?;
        }
        if let Some(input) = &mut self.input {
            input.clear_notice();
        }
        if self.activity.elapsed() > BELL_AFTER {
            Region::send("\u{7}");
        }
        match &mut self.input {
            Some(_) => Region::draw(&LiveFrame::default())?,
            None => {
                title("");
                *self.keys = None;
                Region::close();
            }
        }
        Ok(is_shown)
    }
}

/// Sets the title of the window.
pub(super) fn title(text: &str) {
    Region::send(&format!("\u{1b}]0;{}\u{7}", sanitize(text)));
}

fn title_working(activity: &Activity) {
    let agent = activity.acting_agent().map_or("", |agent| agent.as_str());
    title(&format!("◐ lango {agent}"));
}
