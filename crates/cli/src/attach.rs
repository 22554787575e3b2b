//! Files that the person attaches: named on the command line, or as `@path` in a chat.

use crate::exit::{Exit, Failure};
use lango_core::{AttachedFile, Attachment};
use lango_documents::{AttachmentError, read_attachment};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads the files of a question, or says which one cannot be attached.
pub fn read_files(paths: &[impl AsRef<Path>]) -> Result<Vec<AttachedFile>, Failure> {
    if paths.len() > AttachedFile::PER_MESSAGE {
        let message = format!(
            "{} files are attached; a message takes {} at most",
            paths.len(),
            AttachedFile::PER_MESSAGE
        );
        return Err(Failure::new(Exit::Usage, message).next("ask about them one after the other"));
    }
    let files: Vec<AttachedFile> = paths
        .iter()
        .map(|path| read_file(path.as_ref()))
        .collect::<Result<_, _>>()?;
    let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
    if bytes > AttachedFile::MESSAGE_BYTES {
        let message = format!(
            "the attached files have {bytes} bytes together; a message takes {} at most",
            AttachedFile::MESSAGE_BYTES
        );
        return Err(Failure::new(Exit::Usage, message).next("ask about them one after the other"));
    }
    Ok(files)
}

fn read_file(path: &Path) -> Result<AttachedFile, Failure> {
    let shown = path.display();
    let unreadable = |error: io::Error| {
        let message = format!("`{shown}` cannot be attached: {error}");
        Failure::new(Exit::Usage, message).next("check the name, and that you may read the file")
    };
    let mut file = open_regular(path).map_err(unreadable)?;
    let most = AttachedFile::FILE_BYTES as u64;
    let mut bytes = Vec::new();
    file.by_ref()
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > most {
        let size = file.metadata().map_or(most + 1, |data| data.len());
        let message = format!("`{shown}` has {size} bytes; a file may have {most} at most");
        return Err(Failure::new(Exit::Usage, message).next("attach the part that matters"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    read_attachment(&name, bytes).map_err(|error| {
        let next = match error {
            AttachmentError::TooLarge { .. } => "attach a smaller one, or the part that matters",
            AttachmentError::NotSupported { .. } => "convert it first, to PNG or to text",
            AttachmentError::NoText { .. } => "attach its pages as images, or its text",
        };
        Failure::new(Exit::Usage, error.to_string()).next(next)
    })
}

/// Opens a file, and refuses what is none: a pipe or a device would block, or never end. What is checked is what was opened.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = options.read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// The files that a line names as `@path`: words that begin with `@` and name a file that exists. Any other `@` is text.
pub fn mentioned_files(line: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        let Some(path) = word.strip_prefix('@').and_then(existing_file) else {
            continue;
        };
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// The file that a word names, without the punctuation that may follow it.
fn existing_file(word: &str) -> Option<&str> {
    let bare = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    [word, bare]
        .into_iter()
        .find(|path| !path.is_empty() && Path::new(path).is_file())
}

/// An attachment on a line: `attached: plan.png (image/png, 48.2 kB)`.
pub fn attachment_line(attachment: &Attachment) -> String {
    let Attachment {
        name,
        media_type,
        size,
        ..
    } = attachment;
    format!("attached: {name} ({media_type}, {})", shown_size(*size))
}

fn shown_size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_name_a_file_are_mentions() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        std::fs::write(&file, "x").unwrap();
        let (file, folder) = (file.to_str().unwrap(), folder.path().to_str().unwrap());
        let line = format!("see @{file}, mail me@{file} @{folder} @nobody and @{file}?");
        assert_eq!(mentioned_files(&line), [file]);
    }
}
