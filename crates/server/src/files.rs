//! Files that callers send, with their bytes or as URLs: read as attachments, stored, and left in the message as references.

use crate::House;
use crate::words;
use a2a::{Message, PartContent};
use lango_a2a::server::{FilesNotStored, Unfit};
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
    house: &dyn House,
    user: &UserId,
    mut message: Message,
) -> Result<Message, FilesNotStored> {
    words::remove_references(&mut message);
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
    let raw = fetch_linked(house, sent).await?;
    let files = read_all(raw).await?;
    let stored = house.runner().store_files(user, files).await;
    let stored = stored.map_err(|error| match error {
        RunnerError::Store(error) => FilesNotStored::Store(error),
        error => unfit(error.to_string()),
    })?;
    for (place, attachment) in places.into_iter().zip(&stored) {
        message.parts[place] = words::reference_part(attachment);
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

/// The names and bytes of all files. The operator hears why one was not fetched; the caller hears less.
async fn fetch_linked(
    house: &dyn House,
    sent: Vec<(String, SentContent)>,
) -> Result<Vec<(String, Vec<u8>)>, FilesNotStored> {
    let most = AttachedFile::PER_MESSAGE;
    if sent.len() > most {
        return Err(unfit(format!("a message may have {most} files at most")));
    }
    let mut linked = LinkedFiles::new(&house.egress());
    let mut raw = Vec::new();
    for (name, content) in sent {
        let bytes = match content {
            SentContent::Bytes(bytes) => bytes,
            SentContent::Url(url) => linked.fetch(&url).await.map_err(|error| {
                house.trouble(&format!(
                    "a caller's file `{name}` was not fetched: {error}"
                ));
                let text = error.text_for_callers();
                unfit(format!("{text}; send the bytes of `{name}` as `raw`"))
            })?,
        };
        raw.push((name, bytes));
    }
    Ok(raw)
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
