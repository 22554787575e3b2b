//! Keys: raw mode, and the keys that the user presses.

use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, EventStream, KeyCode, KeyEvent,
    KeyEventKind, KeyModifiers,
};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use futures_util::{FutureExt, StreamExt};
use rustix::process::{getpid, kill_process};
use rustix::termios::{QueueSelector, tcflush};
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the user did at the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// Text that was pasted, which is never taken for keys.
    Paste(String),
    Ctrl(char),
    Alt(char),
    Enter,
    /// Enter with Alt or Shift, which starts a new line.
    NewLine,
    Tab,
    BackTab,
    Backspace,
    Delete,
    /// Backspace with Ctrl or Alt.
    DeleteWord,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    Home,
    End,
    PageUp,
    PageDown,
    Escape,
    /// The terminal has a new size.
    Resize,
    /// The terminal is gone.
    Closed,
}

/// Raw mode with bracketed paste: keys arrive one by one and are not shown by the terminal. Dropping it restores the
/// terminal.
#[derive(Debug)]
pub struct RawMode(());

impl RawMode {
    /// Enters raw mode.
    pub fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let _ = crossterm::execute!(io::stderr(), EnableBracketedPaste);
        Ok(Self(()))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = crossterm::execute!(io::stderr(), DisableBracketedPaste);
        let _ = disable_raw_mode();
    }
}

/// Stops this process until the shell continues it. The terminal must be in its normal mode.
pub fn suspend_process() {
    let _ = kill_process(getpid(), rustix::process::Signal::TSTP);
}

/// Reads keys in raw mode. Dropping it restores the terminal and leaves later input to others.
pub struct KeyReader {
    // Dropped first, so that nothing reads keys any more when raw mode ends.
    events: EventStream,
    /// The stream of events never ends, not even when the terminal is gone; the signal says so.
    hangup: Signal,
    terminate: Signal,
    _raw: RawMode,
}

impl KeyReader {
    /// Enters raw mode and starts reading.
    ///
    /// # Errors
    /// There is no terminal, or it is gone. A reader of a terminal that is gone would wait for ever.
    pub fn open() -> io::Result<Self> {
        if !super::has_keyboard() {
            return Err(io::Error::other("the terminal is gone"));
        }
        let raw = RawMode::enter()?;
        Ok(Self {
            events: EventStream::new(),
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            _raw: raw,
        })
    }

    /// Like [`open`](Self::open), but discards what was typed before.
    pub fn open_fresh() -> io::Result<Self> {
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        Self::open()
    }

    /// Waits for the next key. A signal that ends the process counts as the end of the keys.
    pub async fn next(&mut self) -> Key {
        loop {
            let event = tokio::select! {
                biased;
                _ = self.hangup.recv() => None,
                _ = self.terminate.recv() => None,
                event = self.events.next() => event,
            };
            match event {
                Some(Ok(event)) => {
                    if let Some(key) = translate(event) {
                        return key;
                    }
                }
                Some(Err(_)) | None => return Key::Closed,
            }
        }
    }

    /// Returns the next key if it has arrived already.
    pub fn try_next(&mut self) -> Option<Key> {
        loop {
            match self.events.next().now_or_never()? {
                Some(Ok(event)) => {
                    if let Some(key) = translate(event) {
                        return Some(key);
                    }
                }
                Some(Err(_)) | None => return Some(Key::Closed),
            }
        }
    }
}

fn translate(event: Event) -> Option<Key> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => translate_key(key),
        Event::Paste(text) => Some(Key::Paste(text)),
        Event::Resize(..) => Some(Key::Resize),
        _ => None,
    }
}

fn translate_key(key: KeyEvent) -> Option<Key> {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    Some(match key.code {
        KeyCode::Enter if alt || shift => Key::NewLine,
        KeyCode::Enter => Key::Enter,
        KeyCode::Char('j') if ctrl => Key::NewLine,
        // Ctrl-H is what some terminals send for Ctrl-Backspace.
        KeyCode::Char('h') if ctrl => Key::DeleteWord,
        KeyCode::Char(letter) if ctrl => Key::Ctrl(letter.to_ascii_lowercase()),
        KeyCode::Char(letter) if alt => Key::Alt(letter),
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Tab if shift => Key::BackTab,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Backspace if ctrl || alt => Key::DeleteWord,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Left if ctrl || alt => Key::WordLeft,
        KeyCode::Right if ctrl || alt => Key::WordRight,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Esc => Key::Escape,
        _ => return None,
    })
}
