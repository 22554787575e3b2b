//! The outputs of the process, each of which may be the terminal or something else.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::io::{self, ErrorKind, IsTerminal};

/// Where the region is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Stdout,
    Stderr,
}

impl Output {
    /// Whether this output is a terminal.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        }
    }

    /// Writes to the terminal, whichever output that is.
    pub(in crate::terminal) fn write_to_terminal(text: &str) -> io::Result<()> {
        let output = if Self::Stderr.is_terminal() {
            Self::Stderr
        } else {
            Self::Stdout
        };
        output.write(text)
    }

    /// Returns what moves to the start of the next row. A terminal in raw mode does not return to the first column at a
    /// newline.
    pub(super) fn newline(self) -> &'static str {
        if crate::terminal::raw_mode::is_raw() && self.is_terminal() {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// Writes a text at once. The buffer of standard output would split it at its last line break, and a terminal that
    /// draws in between shows half of a frame.
    pub(super) fn write(self, text: &str) -> io::Result<()> {
        match self {
            Self::Stdout => write_all(&io::stdout().lock(), text),
            Self::Stderr => write_all(&io::stderr().lock(), text),
        }
    }
}

/// Writes all of a text, also if another program has left the terminal in a mode in which a write does not wait.
fn write_all(output: &impl AsFd, text: &str) -> io::Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match rustix::io::write(output, rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(output, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{OFlags, fcntl_setfl};
    use std::io::Read as _;

    #[test]
    fn a_text_arrives_in_full_if_writes_do_not_wait() {
        let (mut reader, writer) = io::pipe().unwrap();
        fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
        let text = "x".repeat(1 << 20);
        std::thread::scope(|scope| {
            let written = scope.spawn(|| {
                let written = write_all(&writer, &text);
                drop(writer);
                written
            });
            let mut read = String::new();
            reader.read_to_string(&mut read).unwrap();
            written.join().unwrap().unwrap();
            assert_eq!(read.len(), text.len());
        });
    }
}
