//! The keys that the user presses.

use super::key_parser::KeyParser;
use super::raw_mode::{RawMode, open_keyboard};
use super::region::RESIZE_PAUSE;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{getpid, kill_process};
use rustix::termios::{QueueSelector, tcflush};
use std::io;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// How long after the pause of a resize the screen is drawn again.
const REDRAW_DELAY: Duration = Duration::from_millis(50);

/// How long to wait for the rest of an escape sequence before its first byte counts as the Escape key.
const ESCAPE_DELAY: Duration = Duration::from_millis(30);

/// How long to wait for the rest of a reply of the terminal before its start counts as Alt with a letter. What is typed in
/// this time is taken for the reply.
const REPLY_START_DELAY: Duration = Duration::from_millis(100);

/// How long to wait for the rest of a longer sequence. On a slow connection it arrives in parts, and what follows the first
/// part must not be taken for keys.
const SEQUENCE_DELAY: Duration = Duration::from_secs(1);

/// Bytes that arrive within this time after a paste are treated as pasted text.
const PASTE_SILENCE: Duration = Duration::from_millis(150);

/// How long a paste must have been silent before Ctrl-C ends it.
const PASTE_END_DELAY: Duration = Duration::from_secs(1);
const CTRL_C: u8 = 0x03;

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
    /// The process was stopped, and others may have used the screen meanwhile.
    Resumed,
    /// The terminal is gone.
    Closed,
}

/// Stops this process until the shell continues it. The terminal must be in its normal mode.
pub fn suspend_process() {
    // The signal of Ctrl-Z does not stop a process that listens for it.
    let _ = kill_process(getpid(), rustix::process::Signal::STOP);
}

/// Listens for Ctrl-Z while no keys are read. The process is no longer stopped by it, and must call [`suspend_process`].
pub fn suspend_signal() -> io::Result<Signal> {
    signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))
}

/// Reads keys in raw mode. Dropping it restores the terminal and leaves later input to others.
///
/// crossterm is not used, because its reader misses a key that arrives together with a resize, or just after another
/// reader was dropped, until the next key is pressed.
pub struct KeyReader {
    keyboard: AsyncFd<OwnedFd>,
    parser: KeyParser,
    last_read: Instant,
    /// When the last bytes of a paste were read.
    pasted: Option<Instant>,
    resize: Signal,
    resized: Option<Instant>,
    /// The process was stopped by another one, and continues.
    resumed: Signal,
    hangup: Signal,
    terminate: Signal,
    quit: Signal,
    /// `None` while the reader is paused.
    raw: Option<RawMode>,
}

impl KeyReader {
    /// Enters raw mode and starts reading.
    ///
    /// # Errors
    /// There is no terminal, or it is gone.
    pub fn open() -> io::Result<Self> {
        Self::read_from(open_keyboard()?)
    }

    /// Enters raw mode, discards what was typed before, and starts reading.
    pub fn open_fresh() -> io::Result<Self> {
        let keyboard = open_keyboard()?;
        let _ = tcflush(&keyboard, QueueSelector::IFlush);
        Self::read_from(keyboard)
    }

    fn read_from(keyboard: OwnedFd) -> io::Result<Self> {
        let raw = RawMode::enter(keyboard.try_clone()?)?;
        #[expect(
            deprecated,
            reason = "the function that replaces it is unsafe code, which is forbidden; for an owned descriptor it is sound"
        )]
        let keyboard = AsyncFd::with_interest(keyboard, Interest::READABLE)?;
        Ok(Self {
            keyboard,
            parser: KeyParser::default(),
            last_read: Instant::now(),
            pasted: None,
            resize: signal(SignalKind::window_change())?,
            resized: None,
            resumed: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            raw: Some(raw),
        })
    }

    /// Leaves raw mode, so that other code can read the terminal. Keys that were read already come after
    /// [`resume`](Self::resume).
    pub fn pause(&mut self) {
        self.raw = None;
    }

    /// Enters raw mode again.
    pub fn resume(&mut self) -> io::Result<()> {
        if self.raw.is_none() {
            let keyboard = self.keyboard.get_ref().try_clone()?;
            self.raw = Some(RawMode::enter(keyboard)?);
        }
        Ok(())
    }

    /// Waits for the next key. Returns [`Key::Closed`] after a signal that ends the process. Cancel-safe.
    pub async fn next(&mut self) -> Key {
        loop {
            if let Some(key) = self.parsed_key() {
                return key;
            }
            let sequence_ends = self.last_read + self.sequence_delay();
            let read = tokio::select! {
                biased;
                _ = self.hangup.recv() => return Key::Closed,
                _ = self.terminate.recv() => return Key::Closed,
                _ = self.quit.recv() => return Key::Closed,
                Some(()) = self.resize.recv() => {
                    self.resized = Some(Instant::now());
                    return Key::Resize;
                }
                // Once more when the size stays, because nothing is drawn before.
                () = sleep_until(self.resized.unwrap_or(self.last_read) + RESIZE_PAUSE + REDRAW_DELAY), if self.resized.is_some() => {
                    self.resized = None;
                    return Key::Resize;
                }
                Some(()) = self.resumed.recv() => {
                    // The shell has set the terminal to its normal mode.
                    if let Some(raw) = &self.raw {
                        let _ = raw.apply();
                    }
                    return Key::Resumed;
                }
                read = read(&self.keyboard) => read,
                () = sleep_until(sequence_ends), if self.parser.is_incomplete() => {
                    match self.parser.last_key() {
                        Some(key) => return key,
                        None => continue,
                    }
                }
            };
            match read {
                Ok(bytes) => self.push(&bytes),
                Err(_) => return Key::Closed,
            }
        }
    }

    /// Returns the next key if it has arrived already.
    pub fn try_next(&mut self) -> Option<Key> {
        loop {
            if let Some(key) = self.parsed_key() {
                return Some(key);
            }
            // In its normal mode, a terminal waits for a whole line.
            self.raw.as_ref()?;
            match read_now(self.keyboard.get_ref()) {
                Ok(bytes) if bytes.is_empty() => return None,
                Ok(bytes) => self.push(&bytes),
                Err(_) => return Some(Key::Closed),
            }
        }
    }

    /// Returns the next key in the bytes that were already read.
    fn parsed_key(&mut self) -> Option<Key> {
        let key = self.parser.next_key()?;
        if let Key::Paste(_) = key {
            self.pasted = Some(self.last_read);
        }
        Some(key)
    }

    fn sequence_delay(&self) -> Duration {
        if self.parser.may_be_escape() {
            ESCAPE_DELAY
        } else if self.parser.may_start_reply() {
            REPLY_START_DELAY
        } else {
            SEQUENCE_DELAY
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let now = Instant::now();
        let was_pasting = self.parser.is_pasting();
        let follows_paste = self.pasted.is_some_and(|at| now - at < PASTE_SILENCE);
        // The end of the paste got lost: Ctrl-C after a pause ends it.
        let is_broken_off =
            was_pasting && bytes == [CTRL_C] && now - self.last_read > PASTE_END_DELAY;
        if is_broken_off {
            self.parser.push_pasted(&[]);
        } else if follows_paste && !was_pasting {
            self.parser.push_pasted(bytes);
        } else {
            self.parser.push(bytes);
        }
        self.last_read = now;
    }
}

/// Waits for bytes.
async fn read(keyboard: &AsyncFd<OwnedFd>) -> io::Result<Vec<u8>> {
    loop {
        let mut guard = keyboard.readable().await?;
        let is_gone = guard.ready().is_read_closed();
        let read = guard.try_io(|keyboard| match read_now(keyboard.get_ref())? {
            bytes if !bytes.is_empty() => Ok(bytes),
            _ if is_gone => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        });
        if let Ok(read) = read {
            return read;
        }
    }
}

/// Returns the bytes that can be read without waiting; raw mode makes the read return at once.
fn read_now(keyboard: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = [0; 4096];
    loop {
        match rustix::io::read(keyboard, &mut bytes) {
            Ok(length) => return Ok(bytes[..length].to_vec()),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
    }
}
