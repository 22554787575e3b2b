//! Modes of the terminal: raw, in which it passes on each key at once and echoes none; and silent, in which only the echo is
//! off.

use super::Output;
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};

const ENABLE_BRACKETED_PASTE: &str = "\u{1b}[?2004h";
const DISABLE_BRACKETED_PASTE: &str = "\u{1b}[?2004l";

static IS_RAW: AtomicBool = AtomicBool::new(false);

/// Whether a [`SilentMode`] is active, so that the terminal's own mode has an echo.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

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
        let mut before = tcgetattr(&keyboard)?;
        before
            .local_modes
            .set(LocalModes::ECHO, is_silent() || has_echo(&before));
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
        let _ = Output::write_to_terminal(ENABLE_BRACKETED_PASTE);
        Ok(())
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = Output::write_to_terminal(DISABLE_BRACKETED_PASTE);
        let _ = tcsetattr(&self.keyboard, OptionalActions::Now, &self.before);
        IS_RAW.store(false, Ordering::Relaxed);
    }
}

/// Keeps typed keys off the screen while something else is drawn there. They stay in the terminal's buffer for the program
/// that reads next. Dropping it turns the echo on again.
#[derive(Debug)]
pub(super) struct SilentMode {
    keyboard: OwnedFd,
}

impl SilentMode {
    /// Turns the echo off. Returns `None` if it is off already, or if this process may not change the terminal.
    pub(super) fn enter() -> Option<Self> {
        let keyboard = open_keyboard().ok()?;
        // A process in the background would be stopped.
        let is_foreground = tcgetpgrp(&keyboard).is_ok_and(|group| group == getpgrp());
        let mut mode = tcgetattr(&keyboard).ok()?;
        if !is_foreground || !has_echo(&mode) {
            return None;
        }
        mode.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&keyboard, OptionalActions::Now, &mode).ok()?;
        IS_SILENT.store(true, Ordering::Relaxed);
        Some(Self { keyboard })
    }
}

impl Drop for SilentMode {
    fn drop(&mut self) {
        IS_SILENT.store(false, Ordering::Relaxed);
        // Raw mode restores the echo when it ends.
        if is_raw() {
            return;
        }
        if let Ok(mut mode) = tcgetattr(&self.keyboard) {
            mode.local_modes.insert(LocalModes::ECHO);
            let _ = tcsetattr(&self.keyboard, OptionalActions::Now, &mode);
        }
    }
}

fn is_silent() -> bool {
    IS_SILENT.load(Ordering::Relaxed)
}

fn has_echo(mode: &Termios) -> bool {
    mode.local_modes.contains(LocalModes::ECHO)
}
