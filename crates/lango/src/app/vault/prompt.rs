//! Reads secret values from the terminal without echo, or from standard input. A signal ends a prompt. The echo stays
//! off between the prompts of a command, because what is typed while a passphrase is checked belongs to the next
//! prompt.

use super::{MAX_TRIES, VaultAccess};
use crate::app::failure::{Failure, FailureKind};
use crate::app::notice::notice;
use crate::app::signals::StopSignals;
use lango_vault::{
    MAX_SECRET_BYTES, MIN_PASSPHRASE_CHARACTERS, SecretValue, UnlockSecret, VaultError,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::fs::File;
use std::io::{IsTerminal, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const CTRL_U: u8 = 0x15;
const BACKSPACES: [u8; 2] = [0x08, 0x7f];
const ESCAPE: u8 = 0x1b;

/// Returns whether there is a terminal to prompt at.
pub fn can_ask() -> bool {
    std::io::stderr().is_terminal() && terminal().is_ok()
}

fn terminal() -> std::io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

/// A guard that keeps the terminal's echo off, from the first prompt until the last clone is dropped or
/// [`end`](Self::end) is called.
#[derive(Clone, Default)]
pub struct EchoGuard(Arc<Mutex<Option<SilentTerminal>>>);

impl EchoGuard {
    fn start(&self, terminal: &File) -> std::io::Result<()> {
        let mut silent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if silent.is_none() {
            *silent = Some(SilentTerminal::start(terminal.try_clone()?)?);
        }
        Ok(())
    }

    /// Turns the echo back on.
    pub fn end(&self) {
        let mut silent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *silent = None;
    }
}

/// Prompts at the terminal without echo, regardless of standard input. Fails on a termination signal. The echo stays
/// off until `echo_guard` ends.
pub async fn read_hidden(echo_guard: &EchoGuard, question: &str) -> Result<SecretValue, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot read from the terminal: {error}"))
            .next("pipe the value to standard input")
    };
    let mut signals = StopSignals::listen().map_err(failed)?;
    let mut terminal = terminal().map_err(failed)?;
    // The caller restores the terminal, not the reading thread: this future may be dropped while the thread waits for
    // a key.
    echo_guard.start(&terminal).map_err(failed)?;
    terminal.write_all(question.as_bytes()).map_err(failed)?;
    let (end, _ends_when_dropped) = std::io::pipe().map_err(failed)?;
    let mut keys = KeyReader {
        terminal: terminal.try_clone().map_err(failed)?,
        end,
    };
    let reading = tokio::task::spawn_blocking(move || read_line(&mut keys));
    let line = signals
        .guard(async { Ok(reading.await.map_err(std::io::Error::other)) })
        .await;
    terminal.write_all(b"\r\n").map_err(failed)?;
    match line?.flatten().map_err(failed)? {
        TypedLine::Typed(value) => Ok(value),
        TypedLine::Interrupted => {
            let message = "interrupted, so nothing was changed";
            Err(Failure::new(FailureKind::Interrupted, message).next("run the command again"))
        }
        TypedLine::TooLong => Err(too_long()),
    }
}

/// Prompts for a value, and a second time to confirm it. Starts over if `check` refuses the value or the two entries
/// differ, up to [`MAX_TRIES`] times in total.
pub async fn read_confirmed(
    echo_guard: &EchoGuard,
    question: &str,
    again: &str,
    check: impl Fn(&SecretValue) -> Result<(), Failure>,
) -> Result<SecretValue, Failure> {
    let mut tries = 1;
    loop {
        let first = read_hidden(echo_guard, question).await?;
        let confirmed = match check(&first) {
            Ok(()) => check_same(first, &read_hidden(echo_guard, again).await?),
            Err(failure) => Err(failure),
        };
        match confirmed {
            Err(failure) if tries < MAX_TRIES => {
                tries += 1;
                notice(&format!("{}; try again", failure.message()));
            }
            confirmed => return confirmed,
        }
    }
}

fn check_same(first: SecretValue, second: &SecretValue) -> Result<SecretValue, Failure> {
    if first.expose() == second.expose() {
        Ok(first)
    } else {
        let message = "the two entries differ; nothing was changed";
        Err(Failure::usage(message).next("run the command again"))
    }
}

/// Prompts for the passphrase of a new vault, and checks its length before the user types it again. Nothing is stored
/// yet, so a mistyped passphrase can be retried.
pub async fn new_passphrase(access: &VaultAccess) -> Result<UnlockSecret, Failure> {
    let question = format!(
        "new passphrase of the {} ({MIN_PASSPHRASE_CHARACTERS} characters or more): ",
        access.name()
    );
    let check = |typed: &SecretValue| {
        let length = typed.expose_text().map(|text| text.chars().count());
        let min_characters = MIN_PASSPHRASE_CHARACTERS;
        if length.is_some_and(|length| length < min_characters) {
            return Err(VaultError::ShortPassphrase { min_characters }.into());
        }
        Ok(())
    };
    let typed = read_confirmed(
        &access.echo_guard(),
        &question,
        "repeat the passphrase: ",
        check,
    )
    .await?;
    Ok(UnlockSecret::Passphrase(typed))
}

/// Reads standard input to its end, and removes one line end (`\n` or `\r\n`) from it.
pub fn read_piped() -> Result<SecretValue, Failure> {
    let failed =
        |error: std::io::Error| Failure::failed(format!("standard input cannot be read: {error}"));
    // Bypasses the buffer of the standard library, in which the value would stay behind.
    let input = std::io::stdin().as_fd().try_clone_to_owned();
    let input = File::from(input.map_err(failed)?);
    let limit = MAX_SECRET_BYTES + 2;
    let mut bytes = Zeroizing::new(Vec::with_capacity(limit + 64));
    let read_limit = u64::try_from(limit).unwrap_or(u64::MAX);
    input
        .take(read_limit)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let value = without_line_end(&bytes);
    if value.len() > MAX_SECRET_BYTES {
        return Err(too_long());
    }
    Ok(SecretValue::new(value))
}

fn without_line_end(bytes: &[u8]) -> &[u8] {
    let ends: [&[u8]; 2] = [b"\r\n", b"\n"];
    let mut stripped = ends.iter().filter_map(|end| bytes.strip_suffix(*end));
    stripped.next().unwrap_or(bytes)
}

fn too_long() -> Failure {
    let message = format!("the value is longer than {MAX_SECRET_BYTES} bytes");
    Failure::usage(message).next("store a shorter one, or split it")
}

/// A terminal without echo. Dropping it restores the terminal.
struct SilentTerminal {
    terminal: File,
    before: Termios,
}

impl SilentTerminal {
    fn start(terminal: File) -> std::io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut silent = before.clone();
        // Keys are handled here, because the terminal's own interrupt would end the process before the echo is back.
        silent.local_modes -=
            LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG;
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Text typed ahead was visible, so it is not part of the value.
        tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for SilentTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// A reader of keys from a terminal, which stops when the other end of a pipe is closed.
struct KeyReader {
    terminal: File,
    end: PipeReader,
}

impl Read for KeyReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let mut waited = [
                PollFd::new(&self.terminal, PollFlags::IN),
                PollFd::new(&self.end, PollFlags::IN),
            ];
            match poll(&mut waited, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if !waited[1].revents().is_empty() {
                return Ok(0);
            }
            return self.terminal.read(buffer);
        }
    }
}

/// The result of reading a line.
enum TypedLine {
    Typed(SecretValue),
    Interrupted,
    TooLong,
}

fn read_line(keys: &mut impl Read) -> std::io::Result<TypedLine> {
    let mut typed = Zeroizing::new(Vec::with_capacity(MAX_SECRET_BYTES + 1));
    let mut key = [0];
    loop {
        if keys.read(&mut key)? == 0 {
            return Ok(TypedLine::Interrupted);
        }
        match key[0] {
            b'\r' | b'\n' => return Ok(TypedLine::Typed(SecretValue::new(&typed[..]))),
            CTRL_C | ESCAPE => return Ok(TypedLine::Interrupted),
            CTRL_D if typed.is_empty() => return Ok(TypedLine::Interrupted),
            CTRL_U => typed.clear(),
            key if BACKSPACES.contains(&key) => remove_last_character(&mut typed),
            _ if typed.len() >= MAX_SECRET_BYTES => return Ok(TypedLine::TooLong),
            key => typed.push(key),
        }
    }
}

fn remove_last_character(typed: &mut Vec<u8>) {
    // Also removes continuation bytes of a UTF-8 character.
    while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[u8]) -> Option<Vec<u8>> {
        match read_line(&mut &*keys).unwrap() {
            TypedLine::Typed(value) => Some(value.expose().to_vec()),
            TypedLine::Interrupted | TypedLine::TooLong => None,
        }
    }

    #[test]
    fn exactly_one_line_end_is_removed() {
        for (piped, value) in [
            ("value\n", "value"),
            ("value\r\n", "value"),
            ("value", "value"),
            ("value\r", "value\r"),
            ("value\n\n", "value\n"),
            ("value\r\n\r\n", "value\r\n"),
            ("two\nlines\n", "two\nlines"),
            ("\n", ""),
        ] {
            assert_eq!(without_line_end(piped.as_bytes()), value.as_bytes());
        }
    }

    #[test]
    fn keys_correct_a_line_and_interrupt_it() {
        assert_eq!(typed(b"abc\r").unwrap(), b"abc");
        assert_eq!(typed("aä\x7f\x7fb\n".as_bytes()).unwrap(), b"b");
        assert_eq!(typed(b"\x7fab\x15cd\r").unwrap(), b"cd");
        assert_eq!(typed(b"ab\x03"), None);
        assert_eq!(typed(b"\x04"), None);
        assert_eq!(typed(b"ab"), None);
        assert_eq!(typed(&[b'x'; MAX_SECRET_BYTES + 1]), None);
        let longest = [&[b'x'; MAX_SECRET_BYTES][..], b"\r"].concat();
        assert_eq!(typed(&longest).unwrap().len(), MAX_SECRET_BYTES);
    }
}
