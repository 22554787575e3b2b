//! Files that the user attaches: named on the command line, or as `@path` in a chat.

use crate::app::failure::Failure;
use lango_core::{AttachedFile, Attachment};
use lango_documents::{AttachmentError, read_attachment};
use lango_tools::Workspace;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads the files that the user attaches to a question. Fails at the first file that cannot be attached.
pub fn read_files(paths: &[impl AsRef<Path>]) -> Result<Vec<AttachedFile>, Failure> {
    check_count(paths.len())?;
    let files: Vec<AttachedFile> = paths
        .iter()
        .map(|path| read_file(path.as_ref()))
        .collect::<Result<_, _>>()?;
    check_files(&files)?;
    Ok(files)
}

/// Reads a file that a text mentions. The text may come from anyone, so only what agents can read is attached; `None` if
/// they cannot read this file.
pub fn read_mentioned(workspace: &Workspace, path: &str) -> Result<Option<AttachedFile>, Failure> {
    let file = workspace.open_file(path).ok();
    file.map(|file| read_open_file(file, Path::new(path)))
        .transpose()
}

/// Fails if the files do not fit into one message.
pub fn check_files(files: &[AttachedFile]) -> Result<(), Failure> {
    check_count(files.len())?;
    let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
    if bytes > AttachedFile::MESSAGE_BYTES {
        let message = format!(
            "the attached files have {bytes} bytes in total; a message can have at most {}",
            AttachedFile::MESSAGE_BYTES
        );
        return Err(Failure::usage(message).next("ask about them in separate messages"));
    }
    Ok(())
}

fn check_count(count: usize) -> Result<(), Failure> {
    if count <= AttachedFile::PER_MESSAGE {
        return Ok(());
    }
    let message = format!(
        "{count} files are attached; a message can have at most {}",
        AttachedFile::PER_MESSAGE
    );
    Err(Failure::usage(message).next("ask about them in separate messages"))
}

/// Reads a file that the user attaches.
pub fn read_file(path: &Path) -> Result<AttachedFile, Failure> {
    let file = open_regular(path).map_err(|error| unreadable(path, &error))?;
    read_open_file(file, path)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("`{}` cannot be attached: {error}", path.display());
    Failure::usage(message).next("check the name and that you can read the file")
}

fn read_open_file(mut file: File, path: &Path) -> Result<AttachedFile, Failure> {
    let shown = path.display();
    let max_bytes = AttachedFile::FILE_BYTES as u64;
    let mut bytes = Vec::new();
    file.by_ref()
        .take(max_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > max_bytes {
        let size = file.metadata().map_or(max_bytes + 1, |data| data.len());
        let message = format!("`{shown}` has {size} bytes; a file can have at most {max_bytes}");
        return Err(Failure::usage(message).next("attach only the relevant part"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    read_attachment(&name, bytes).map_err(|error| {
        let next = match error {
            AttachmentError::TooLarge { .. } => "attach a smaller file, or only the relevant part",
            AttachmentError::NotSupported { .. } => "convert it first, to PNG or to text",
            AttachmentError::NoText { .. } => "attach its pages as images, or its text",
        };
        Failure::usage(error.to_string()).next(next)
    })
}

/// Opens a regular file. A pipe or a device is refused, because it would block or never end. The check uses the open
/// handle, so the file cannot be swapped afterwards.
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

/// Returns the files that a line mentions: words that start with `@` and name an existing file. Any other `@` is
/// text.
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

/// Returns the paths that a line mentions with `@` although there is no such file. A name without a dot or a slash may be
/// anything, and is not one of them.
pub fn missing_files(line: &str) -> Vec<&str> {
    let words = line.split_whitespace();
    let mentioned = words.filter_map(|word| word.strip_prefix('@'));
    mentioned
        .filter(|word| existing_file(word).is_none())
        .map(without_punctuation)
        .filter(|path| path.trim_matches('.').contains(['.', '/']) && !Path::new(path).exists())
        .collect()
}

/// Returns the file that a word names, without trailing punctuation.
fn existing_file(word: &str) -> Option<&str> {
    [word, without_punctuation(word)]
        .into_iter()
        .find(|path| !path.is_empty() && Path::new(path).is_file())
}

fn without_punctuation(word: &str) -> &str {
    word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')'])
}

/// Describes an attachment on one line: `attached: plan.png (image/png, 48.2 kB)`.
pub fn attachment_line(attachment: &Attachment) -> String {
    let Attachment {
        name,
        media_type,
        size,
        ..
    } = attachment;
    format!("attached: {name} ({media_type}, {})", format_size(*size))
}

fn format_size(bytes: u64) -> String {
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
        assert_eq!(missing_files(&line), [""; 0]);
        let line = format!("compare @{file} with @nosuch.txt, @src/nosuch and @nobody...");
        assert_eq!(missing_files(&line), ["nosuch.txt", "src/nosuch"]);
    }
}
