//! The lines of a file that may be anybody's and may never end: read on a thread of their own, a few ahead, none longer than
//! the longest that is ever written.

use super::unreadable;
use crate::exit::Failure;
use lango_store::archive::line::LONGEST;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::thread;
use tokio::sync::mpsc;

/// How many lines are read ahead.
const AHEAD: usize = 8;

/// What is wrong with a line, in words that follow its number.
type LineRead = Result<String, String>;

/// The lines of a file.
pub struct Lines {
    read: mpsc::Receiver<LineRead>,
    number: u64,
}

impl Lines {
    /// Opens it; `-` is standard input.
    pub fn open(file: &Path) -> Result<Self, Failure> {
        let source: Box<dyn Read + Send> = match file.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => {
                let opened = File::open(file).and_then(not_a_folder);
                Box::new(opened.map_err(|error| unreadable(file, &error))?)
            }
        };
        let (sender, read) = mpsc::channel(AHEAD);
        let started = thread::Builder::new()
            .name("lango-import".to_owned())
            .spawn(move || send_all(BufReader::new(source), &sender));
        started.map_err(|error| unreadable(file, &error))?;
        Ok(Self { read, number: 0 })
    }

    /// The next line, or what is wrong with it.
    pub async fn next(&mut self) -> Option<LineRead> {
        let line = self.read.recv().await?;
        self.number += 1;
        Some(line)
    }

    /// The number of the line that was read last.
    pub fn number(&self) -> u64 {
        self.number
    }
}

fn not_a_folder(file: File) -> io::Result<File> {
    match file.metadata()?.is_dir() {
        true => Err(io::Error::other("it is a folder")),
        false => Ok(file),
    }
}

fn send_all(mut source: impl BufRead, lines: &mpsc::Sender<LineRead>) {
    loop {
        let line = next_line(&mut source);
        let is_last = !matches!(line, Ok(Some(_)));
        let Some(line) = line.transpose() else {
            return;
        };
        // Nobody waits for more once something was wrong.
        if lines.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

fn next_line(source: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    let most = LONGEST as u64 + 1;
    let read = source.take(most).read_until(b'\n', &mut bytes);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else if bytes.len() > LONGEST {
        return Err(format!("it is longer than {} MiB", LONGEST >> 20));
    }
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|error| format!("it is not UTF-8 text: {}", error.utf8_error()))
}
