//! Files from a remote agent: limited in size while the response arrives, and converted to attachments when it is
//! complete.

use crate::linked_files::{LinkedFiles, name_in_url};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use lango_core::AttachedFile;
use lango_documents::read_attachment;
use lango_net::Egress;

/// A received file.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RemoteFile {
    name: String,
    content: FileContent,
}

#[derive(Clone, PartialEq, Eq)]
enum FileContent {
    Bytes(Vec<u8>),
    /// Fetched when the response is complete.
    Url(String),
}

impl RemoteFile {
    /// Returns the number of received bytes.
    pub(super) fn len(&self) -> usize {
        match &self.content {
            FileContent::Bytes(bytes) => bytes.len(),
            FileContent::Url(_) => 0,
        }
    }
}

impl std::fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteFile({}, {} bytes)", self.name, self.len())
    }
}

/// Decodes a part with inline bytes, in any base64 alphabet, with or without padding. The error tells the reader why
/// the file was left out.
pub(crate) fn file_part(name: Option<String>, raw: &str) -> Result<RemoteFile, String> {
    if raw.len() / 4 * 3 > AttachedFile::FILE_BYTES + 3 {
        return Err(format!(
            "left out: a file may have at most {} bytes",
            AttachedFile::FILE_BYTES
        ));
    }
    let dialects = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    let bytes = dialects.iter().find_map(|dialect| dialect.decode(raw).ok());
    let bytes = bytes.ok_or("left out: it is not base64")?;
    Ok(RemoteFile {
        name: name.unwrap_or_else(|| "file".to_owned()),
        content: FileContent::Bytes(bytes),
    })
}

/// Creates a file from a part with a URL.
pub(crate) fn linked_part(name: Option<String>, url: &str) -> RemoteFile {
    RemoteFile {
        name: name
            .or_else(|| name_in_url(url))
            .unwrap_or_else(|| "file".to_owned()),
        content: FileContent::Url(url.to_owned()),
    }
}

/// Converts the files of a response to attachments. Also returns a sentence about each file that cannot be converted.
/// Documents are parsed on a blocking thread.
pub(crate) async fn attach(
    files: Vec<RemoteFile>,
    egress: &Egress,
) -> (Vec<AttachedFile>, Vec<String>) {
    let (files, mut problems) = fetch_linked(files, egress).await;
    if files.is_empty() {
        return (Vec::new(), problems);
    }
    let reading = tokio::task::spawn_blocking(move || {
        let files = files.into_iter();
        let files = files.map(|(name, bytes)| read_attachment(&name, bytes));
        files.collect::<Vec<_>>()
    });
    let mut attached = Vec::new();
    for file in reading.await.unwrap_or_default() {
        match file {
            Ok(file) => attached.push(file),
            Err(error) => problems.push(error.to_string()),
        }
    }
    (attached, problems)
}

/// Returns the names and bytes of all files; fetches those given by URL.
async fn fetch_linked(
    files: Vec<RemoteFile>,
    egress: &Egress,
) -> (Vec<(String, Vec<u8>)>, Vec<String>) {
    let mut linked = LinkedFiles::new(egress);
    let (mut fetched, mut problems) = (Vec::new(), Vec::new());
    for file in files.into_iter().take(AttachedFile::PER_MESSAGE) {
        match file.content {
            FileContent::Bytes(bytes) => fetched.push((file.name, bytes)),
            FileContent::Url(url) => match linked.fetch(&url).await {
                Ok(bytes) => fetched.push((file.name, bytes)),
                Err(error) => problems.push(format!("`{}` was not fetched: {error}", file.name)),
            },
        }
    }
    (fetched, problems)
}
