//! Raw mode: the terminal passes on each key at once and does not echo it.

use rustix::fd::{AsFd, OwnedFd};
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};

const ENABLE_BRACKETED_PASTE: &str = "\u{1b}[?2004h";
const DISABLE_BRACKETED_PASTE: &str = "\u{1b}[?2004l";

static IS_RAW: AtomicBool = AtomicBool::new(false);

/// Whether the terminal is in raw mode.
pub(super) fn is_raw() -> bool {
    IS_RAW.load(Ordering::Relaxed)
}

/// Opens the terminal that keys come from: standard input, or the one that controls this process.
pub(super) fn open_keyboard() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return stdin.as_fd().try_clone_to_owned();
    }
    Ok(File::open("/dev/tty")?.into())
}

/// Raw mode with bracketed paste. Reading never blocks in it. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct RawMode {
    keyboard: OwnedFd,
    before: Termios,
}

impl RawMode {
    /// Enters raw mode.
    pub(super) fn enter(keyboard: OwnedFd) -> io::Result<Self> {
        let before = tcgetattr(&keyboard)?;
        let mode = Self { keyboard, before };
        mode.apply()?;
        Ok(mode)
    }

    /// Enters raw mode again, after a shell has set the terminal to its normal mode.
    pub(super) fn apply(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        // A read returns at once, also without a key, so that no other reader can make it wait.
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&self.keyboard, OptionalActions::Now, &raw)?;
        IS_RAW.store(true, Ordering::Relaxed);
        write(ENABLE_BRACKETED_PASTE);
        Ok(())
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        write(DISABLE_BRACKETED_PASTE);
        let _ = tcsetattr(&self.keyboard, OptionalActions::Now, &self.before);
        IS_RAW.store(false, Ordering::Relaxed);
    }
}

fn write(text: &str) {
    let _ = rustix::io::write(io::stderr(), text.as_bytes());
}
