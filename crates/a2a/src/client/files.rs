//! Files that a remote agent sends with their bytes: bounded while the answer comes, and made into attachments when it is whole.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use lango_core::AttachedFile;
use lango_documents::read_attachment;

/// A file as it came.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RemoteFile {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteFile({}, {} bytes)", self.name, self.bytes.len())
    }
}

/// Reads a part with bytes, or says why that cannot be done. Base64 is taken in every dialect that servers write.
pub(crate) fn file_part(name: Option<String>, raw: &str) -> Result<RemoteFile, String> {
    if raw.len() / 4 * 3 > AttachedFile::FILE_BYTES + 3 {
        return Err(format!(
            "left out: a file may have {} bytes at most",
            AttachedFile::FILE_BYTES
        ));
    }
    let dialects = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    let bytes = dialects.iter().find_map(|dialect| dialect.decode(raw).ok());
    let bytes = bytes.ok_or("left out: it is not base64")?;
    Ok(RemoteFile {
        name: name.unwrap_or_else(|| "file".to_owned()),
        bytes,
    })
}

/// The files of an answer as attachments, and a sentence about each that cannot be one. Documents are parsed on a thread where
/// that disturbs no one.
pub(crate) async fn attach(files: Vec<RemoteFile>) -> (Vec<AttachedFile>, Vec<String>) {
    if files.is_empty() {
        return Default::default();
    }
    let reading = tokio::task::spawn_blocking(move || {
        let (mut attached, mut problems) = (Vec::new(), Vec::new());
        for file in files {
            match read_attachment(&file.name, file.bytes) {
                Ok(file) => attached.push(file),
                Err(error) => problems.push(error.to_string()),
            }
        }
        (attached, problems)
    });
    reading.await.unwrap_or_default()
}
