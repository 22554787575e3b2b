//! Files that callers send as bytes or as URLs. They are stored as attachments, and the message refers to them.

use crate::messages;
use crate::{Notice, ServerContext};
use a2a::{Message, PartContent};
use lango_a2a::server::{FileError, MessageError};
use lango_a2a::{LinkedFiles, name_in_url};
use lango_core::{AttachedFile, UserId};
use lango_documents::{AttachmentError, read_attachment};
use lango_engine::RunnerError;

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

/// Stores the files of a message and puts references in their place. Those at URLs are fetched first.
pub(crate) async fn store_files(
    context: &dyn ServerContext,
    user: &UserId,
    mut message: Message,
) -> Result<Message, FileError> {
    messages::remove_references(&mut message);
    let mut places = Vec::new();
    let mut sent = Vec::new();
    for (place, part) in message.parts.iter_mut().enumerate() {
        let content = match &mut part.content {
            PartContent::Raw(bytes) => SentContent::Bytes(std::mem::take(bytes)),
            PartContent::Url(url) => SentContent::Url(std::mem::take(url)),
            PartContent::Text(_) | PartContent::Data(_) => continue,
        };
        let name = part.filename.clone().or_else(|| content.name());
        let name = name.unwrap_or_else(|| format!("file-{}", place + 1));
        sent.push((name, content));
        places.push(place);
    }
    if sent.is_empty() {
        return Ok(message);
    }
    let raw = fetch_linked(context, sent).await?;
    let files = read_all(raw).await?;
    let stored = context.runner().store_files(user, files).await;
    let stored = stored.map_err(|error| match error {
        RunnerError::Store(error) => FileError::Store(error),
        error => invalid(error.to_string()),
    })?;
    for (place, attachment) in places.into_iter().zip(&stored) {
        message.parts[place] = messages::reference_part(attachment);
    }
    Ok(message)
}

enum SentContent {
    Bytes(Vec<u8>),
    Url(String),
}

impl SentContent {
    fn name(&self) -> Option<String> {
        match self {
            Self::Bytes(_) => None,
            Self::Url(url) => name_in_url(url),
        }
    }
}

/// Returns the names and bytes of all files. The operator learns why one was not fetched; the caller learns less.
async fn fetch_linked(
    context: &dyn ServerContext,
    sent: Vec<(String, SentContent)>,
) -> Result<Vec<(String, Vec<u8>)>, FileError> {
    let most = AttachedFile::PER_MESSAGE;
    if sent.len() > most {
        return Err(invalid(format!("has more than {most} files")));
    }
    let mut linked = LinkedFiles::new(&context.egress());
    let mut raw = Vec::new();
    for (name, content) in sent {
        let bytes = match content {
            SentContent::Bytes(bytes) => bytes,
            SentContent::Url(url) => linked.fetch(&url).await.map_err(|error| {
                let problem = format!("a caller's file `{name}` was not fetched: {error}");
                context.notify(Notice::Error(&problem));
                let text = error.text_for_callers();
                invalid(format!("{text}; send the bytes of `{name}` as `raw`"))
            })?,
        };
        raw.push((name, bytes));
    }
    Ok(raw)
}

/// Reads the files on a thread of their own: parsing a document takes a while.
async fn read_all(raw: Vec<(String, Vec<u8>)>) -> Result<Vec<AttachedFile>, FileError> {
    let reading = tokio::task::spawn_blocking(move || {
        let files = raw.into_iter();
        let files = files.map(|(name, bytes)| read_attachment(&name, bytes));
        files.collect::<Result<Vec<_>, _>>()
    });
    match reading.await {
        Ok(Ok(files)) => Ok(files),
        Ok(Err(error @ AttachmentError::NotSupported { .. })) => Err(FileError::Message(
            MessageError::ContentType(error.to_string()),
        )),
        Ok(Err(error)) => Err(invalid(error.to_string())),
        Err(_panic) => Err(invalid("a file could not be read".to_owned())),
    }
}

fn invalid(problem: String) -> FileError {
    FileError::Message(MessageError::Field("message.parts".to_owned(), problem))
}
