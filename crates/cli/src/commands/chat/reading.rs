//! Waits for the next message of the user.

use super::Chat;
use crate::commands::chat_input::InputAction;
use crate::commands::turn_screen::title;
use crate::screen::{self, columns};
use crate::terminal::{
    Key, KeyReader, LineReader, LineSource, LiveFrame, Output, Region, ScreenMode, suspend_process,
};
use lango::app::Failure;
use lango::app::signals::{StopSignal, StopSignals};
use std::pin::pin;
use std::time::{Duration, Instant};

/// How soon a second Ctrl-C must follow to leave the chat.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// The title of the window while the chat waits for a message.
const READY: &str = "lango · ready";

impl Chat<'_> {
    /// Waits for the next message and meanwhile updates memory for the last turn. Returns `None` if the user leaves.
    /// Fails if the process gets a termination signal, or got one during the last turn.
    pub(super) async fn next_message(
        &mut self,
        signals: &mut StopSignals,
    ) -> Result<Option<String>, Failure> {
        if let Some(queued) = self.input.next_queued() {
            return Ok(Some(queued));
        }
        let remember = self
            .app
            .remember(self.conversation.user(), self.conversation.session());
        let mut remember = pin!(remember);
        let mut is_remembered = false;
        match self.screen {
            ScreenMode::Live => {
                self.draw_input()?;
                title(READY);
            }
            ScreenMode::Plain => {
                self.lines
                    .get_or_insert_with(|| LineReader::open(LineSource::Stdin));
            }
        }
        loop {
            let typed = read(&mut self.keys, &mut self.lines);
            let typed = tokio::select! {
                biased;
                () = signals.terminated() => return Err(StopSignal::Terminate.into()),
                typed = typed => typed,
                _ = &mut remember, if !is_remembered => {
                    is_remembered = true;
                    continue;
                }
            };
            match typed {
                Typed::Key(key) => {
                    // What was typed or pasted at once is drawn at once.
                    let mut waiting = Some(key);
                    while let Some(key) = waiting {
                        if let Some(end) = self.handle_key(&key).await? {
                            return Ok(end);
                        }
                        waiting = self.keys.as_mut().and_then(KeyReader::try_next);
                    }
                    self.draw_input()?;
                }
                Typed::Line(Some(line)) if line.trim().is_empty() => {}
                Typed::Line(line) => return Ok(line),
            }
        }
    }

    /// Handles a key at the prompt. Returns the message, or `None` inside if the user leaves.
    async fn handle_key(&mut self, key: &Key) -> Result<Option<Option<String>>, Failure> {
        match key {
            Key::Resize | Key::Resumed => Region::redraw()?,
            Key::Closed => return Ok(Some(None)),
            key => match self.input.handle(key) {
                InputAction::None if *key == Key::Ctrl('c') => title(READY),
                InputAction::None => {}
                InputAction::Submit(message) => {
                    Region::draw(&LiveFrame::default())?;
                    return Ok(Some(Some(message)));
                }
                InputAction::Leave => return Ok(Some(None)),
                InputAction::Cancel => {
                    title(READY);
                    let last = self.last_interrupt.filter(|_| *key == Key::Ctrl('c'));
                    if last.is_some_and(|last| last.elapsed() < LEAVE_WITHIN) {
                        return Ok(Some(None));
                    }
                    self.last_interrupt = (*key == Key::Ctrl('c')).then(Instant::now);
                    let notice = "ctrl-c again or ctrl-d leaves · /help lists commands and keys";
                    self.input.notify(notice);
                }
                InputAction::ShowOutput => {
                    let text = self.activity.full_result();
                    let text = text.unwrap_or_else(|| self.palette.dim("no more output of tools"));
                    screen::print_rendered(&text)?;
                }
                InputAction::Edit => self.edit_outside().await?,
                InputAction::Clear => Region::clear()?,
                InputAction::Suspend => self.suspend()?,
            },
        }
        Ok(None)
    }

    fn draw_input(&mut self) -> std::io::Result<()> {
        let mut frame = LiveFrame {
            rows: vec![String::new()],
            cursor: None,
        };
        self.input.push_rows(&mut frame, columns(), &self.palette);
        Region::draw(&frame)
    }

    /// Leaves the terminal to the user's editor.
    async fn edit_outside(&mut self) -> Result<(), Failure> {
        self.keys = None;
        Region::close();
        self.input.edit_outside().await;
        Region::open(Output::Stdout);
        self.keys = Some(KeyReader::open()?);
        Ok(())
    }

    /// Stops this process until the shell continues it.
    fn suspend(&mut self) -> Result<(), Failure> {
        self.keys = None;
        Region::close();
        suspend_process();
        Region::open(Output::Stdout);
        self.keys = Some(KeyReader::open()?);
        Ok(())
    }
}

enum Typed {
    Key(Key),
    /// A line; `None` at the end of the input.
    Line(Option<String>),
}

async fn read(keys: &mut Option<KeyReader>, lines: &mut Option<LineReader>) -> Typed {
    match (keys, lines) {
        (Some(keys), _) => Typed::Key(keys.next().await),
        (None, Some(lines)) => Typed::Line(lines.next("\n> ").await),
        (None, None) => Typed::Line(None),
    }
}
