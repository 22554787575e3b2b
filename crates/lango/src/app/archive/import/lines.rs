//! Reads the lines of an untrusted and possibly endless file: on a separate thread, a few lines ahead, with a limit
//! on their length.

use super::unreadable;
use crate::app::failure::Failure;
use lango_store::archive::line::MAX_LINE_BYTES;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::thread;
use tokio::sync::mpsc;

const READ_AHEAD: usize = 8;

/// A line, or a description of what is wrong with it, to be printed after the line's number.
type LineRead = Result<String, String>;

pub(super) struct ImportLines {
    read: mpsc::Receiver<LineRead>,
    number: u64,
}

impl ImportLines {
    /// Opens a file; `-` is standard input.
    pub(super) fn open(file: &Path) -> Result<Self, Failure> {
        let source: Box<dyn Read + Send> = if file.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            let opened = File::open(file).and_then(check_not_folder);
            Box::new(opened.map_err(|error| unreadable(file, &error))?)
        };
        let (sender, read) = mpsc::channel(READ_AHEAD);
        let started = thread::Builder::new()
            .name("lango-import".to_owned())
            .spawn(move || send_all(BufReader::new(source), &sender));
        started.map_err(|error| unreadable(file, &error))?;
        Ok(Self { read, number: 0 })
    }

    /// Returns the next line, or what is wrong with it.
    pub(super) async fn next(&mut self) -> Option<LineRead> {
        let line = self.read.recv().await?;
        self.number += 1;
        Some(line)
    }

    /// Returns the number of the last line that was read.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

fn check_not_folder(file: File) -> io::Result<File> {
    if file.metadata()?.is_dir() {
        Err(io::Error::other("it is a folder"))
    } else {
        Ok(file)
    }
}

fn send_all(mut source: impl BufRead, lines: &mpsc::Sender<LineRead>) {
    loop {
        let line = next_line(&mut source);
        let is_last = !matches!(line, Ok(Some(_)));
        let Some(line) = line.transpose() else {
            return;
        };
        // After an error nothing more is read.
        if lines.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

fn next_line(source: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    let limit = MAX_LINE_BYTES as u64 + 1;
    let read = source.take(limit).read_until(b'\n', &mut bytes);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else if bytes.len() > MAX_LINE_BYTES {
        return Err(format!("it is longer than {} MiB", MAX_LINE_BYTES >> 20));
    }
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|error| format!("it is not UTF-8 text: {}", error.utf8_error()))
}
