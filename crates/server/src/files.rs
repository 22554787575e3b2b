//! Files that callers send with their bytes: read as attachments, stored, and left in the message as references.

use crate::words;
use a2a::{Message, PartContent};
use lango_a2a::server::{FilesNotStored, Unfit};
use lango_core::{AttachedFile, UserId};
use lango_documents::{AttachmentError, read_attachment};
use lango_engine::{Runner, RunnerError};

/// The media types that callers may send.
pub const INPUT_MODES: [&str; 8] = [
    "text/plain",
    "text/*",
    "application/json",
    "application/pdf",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
];

/// Stores the files of a message and puts references in their place.
pub(crate) async fn store_files(
    runner: &Runner,
    user: &UserId,
    mut message: Message,
) -> Result<Message, FilesNotStored> {
    words::remove_references(&mut message);
    let mut places = Vec::new();
    let mut raw = Vec::new();
    for (place, part) in message.parts.iter_mut().enumerate() {
        if let PartContent::Raw(bytes) = &mut part.content {
            let name = part.filename.clone();
            let name = name.unwrap_or_else(|| format!("file-{}", place + 1));
            raw.push((name, std::mem::take(bytes)));
            places.push(place);
        }
    }
    if raw.is_empty() {
        return Ok(message);
    }
    let files = read_all(raw).await?;
    let stored = runner.store_files(user, files).await;
    let stored = stored.map_err(|error| match error {
        RunnerError::Store(error) => FilesNotStored::Store(error),
        error => unfit(error.to_string()),
    })?;
    for (place, attachment) in places.into_iter().zip(&stored) {
        message.parts[place] = words::reference_part(attachment);
    }
    Ok(message)
}

/// Reads the files on a thread of their own: parsing a document takes a while.
async fn read_all(raw: Vec<(String, Vec<u8>)>) -> Result<Vec<AttachedFile>, FilesNotStored> {
    let reading = tokio::task::spawn_blocking(move || {
        let files = raw.into_iter();
        let files = files.map(|(name, bytes)| read_attachment(&name, bytes));
        files.collect::<Result<Vec<_>, _>>()
    });
    match reading.await {
        Ok(Ok(files)) => Ok(files),
        Ok(Err(error @ AttachmentError::NotSupported { .. })) => {
            Err(FilesNotStored::Unfit(Unfit::ContentType(error.to_string())))
        }
        Ok(Err(error)) => Err(unfit(error.to_string())),
        Err(_panic) => Err(unfit("a file could not be read".to_owned())),
    }
}

fn unfit(problem: String) -> FilesNotStored {
    FilesNotStored::Unfit(Unfit::Field("message.parts".to_owned(), problem))
}
