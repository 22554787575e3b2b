//! Handles files that callers send as bytes or as URLs. The server stores them as attachments, and the message refers
//! to them. A short text file becomes part of the message's text instead, because some clients send the user's text as
//! a file.

use crate::messages;
use crate::{Notice, ServerContext};
use a2a::{Message, Part, PartContent};
use lango_a2a::server::{FileError, MessageError};
use lango_a2a::{LinkedFiles, name_in_url};
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

/// How many bytes of text files may become part of one message's text. Further files are attached.
const INLINE_TEXT_BYTES: usize = 64 * 1024;

/// Stores the files of a message and replaces them with references. Fetches files that are given by URL first. Replaces
/// short `text/*` files with their text.
pub(crate) async fn store_files(
    context: &dyn ServerContext,
    user: &UserId,
    mut message: Message,
) -> Result<Message, FileError> {
    messages::remove_references(&mut message);
    let mut indexes = Vec::new();
    let mut sent = Vec::new();
    let mut is_text = Vec::new();
    for (index, part) in message.parts.iter_mut().enumerate() {
        let content = match &mut part.content {
            PartContent::Raw(bytes) => SentContent::Bytes(std::mem::take(bytes)),
            PartContent::Url(url) => SentContent::Url(std::mem::take(url)),
            PartContent::Text(_) | PartContent::Data(_) => continue,
        };
        let name = part.filename.clone().or_else(|| content.name());
        let name = name.unwrap_or_else(|| format!("file-{}", index + 1));
        is_text.push(matches!(content, SentContent::Bytes(_)) && has_text_type(part));
        sent.push((name, content));
        indexes.push(index);
    }
    if sent.is_empty() {
        return Ok(message);
    }
    let raw = fetch_linked(context, sent).await?;
    let mut bytes_left = INLINE_TEXT_BYTES;
    let mut files = Vec::new();
    let mut attached = Vec::new();
    for ((file, index), is_text) in read_all(raw).await?.into_iter().zip(indexes).zip(is_text) {
        match inline_text(&file, bytes_left).filter(|_| is_text) {
            Some(text) => {
                bytes_left -= text.len();
                message.parts[index].content = PartContent::Text(text);
            }
            None => {
                files.push(file);
                attached.push(index);
            }
        }
    }
    check_length(&message)?;
    if files.is_empty() {
        return Ok(message);
    }
    let stored = context.runner().store_files(user, files).await;
    let stored = stored.map_err(|error| match error {
        RunnerError::Store(error) => FileError::Store(error),
        error => invalid(error.to_string()),
    })?;
    for (index, attachment) in attached.into_iter().zip(&stored) {
        message.parts[index] = messages::reference_part(attachment);
    }
    Ok(message)
}

/// Returns the text of a file, or `None` if it is not a text file or has more than `max_bytes` bytes.
fn inline_text(file: &AttachedFile, max_bytes: usize) -> Option<String> {
    if file.bytes.len() > max_bytes || !file.media_type.starts_with("text/") {
        return None;
    }
    String::from_utf8(file.bytes.to_vec()).ok()
}

fn has_text_type(part: &Part) -> bool {
    let kind = part.media_type.as_deref().unwrap_or_default().trim_start();
    kind.get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("text/"))
}

/// Checks that the text of the message, including text files, is within the limit for a turn.
fn check_length(message: &Message) -> Result<(), FileError> {
    match messages::message_text(message).len() {
        length if length > Runner::INPUT_BYTES => Err(invalid(format!(
            "has {length} bytes of text; the limit is {}",
            Runner::INPUT_BYTES
        ))),
        _ => Ok(()),
    }
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

/// Returns the names and bytes of all files; fetches those given by URL. If that fails, reports the cause to the
/// operator, and a text without internal details to the caller.
async fn fetch_linked(
    context: &dyn ServerContext,
    sent: Vec<(String, SentContent)>,
) -> Result<Vec<(String, Vec<u8>)>, FileError> {
    let max_files = AttachedFile::PER_MESSAGE;
    if sent.len() > max_files {
        return Err(invalid(format!("has more than {max_files} files")));
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

/// Reads the files on a blocking thread, because parsing a document can take a while.
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
