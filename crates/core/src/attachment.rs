//! Files attached to messages. Events contain references; the bytes are stored once per user, under their digest.

use crate::{BoxFuture, StoreError, Text, UserId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A reference to a stored file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The name that users and models see, unique among the files of a turn.
    pub name: Text,
    /// The media type of an image, or `text/…` for everything that was attached as text.
    pub media_type: Text,
    /// The SHA-256 of the bytes, in hexadecimal.
    pub digest: Text,
    /// The size in bytes.
    pub size: u64,
}

impl Attachment {
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    pub fn is_text(&self) -> bool {
        self.media_type.starts_with("text/")
    }
}

/// A file with its bytes, before it is stored or after it is loaded.
#[derive(Clone, PartialEq, Eq)]
pub struct AttachedFile {
    /// The name that the sender gave. The engine makes it safe and unique before it stores the file.
    pub name: String,
    /// The media type of an image, or `text/…`.
    pub media_type: Text,
    /// The content; UTF-8 if it is text.
    pub bytes: Arc<[u8]>,
}

impl AttachedFile {
    /// The maximum size of an image in bytes.
    pub const IMAGE_BYTES: usize = 5_000_000;
    /// The maximum size of any other file in bytes.
    pub const FILE_BYTES: usize = 10_000_000;
    /// The maximum number of files in one message or result.
    pub const PER_MESSAGE: usize = 16;
    /// The maximum total size of the files in one message or result, in bytes. Files up to this size still fit into a
    /// provider's request when they are encoded in base64.
    pub const MESSAGE_BYTES: usize = 20_000_000;

    /// Creates an image file if the bytes are a PNG, JPEG, GIF or WebP image, the types that models can read.
    pub fn image(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Option<Self> {
        let bytes = bytes.into();
        let media_type = image_type(&bytes)?.into();
        Some(Self {
            name: name.into(),
            media_type,
            bytes,
        })
    }

    /// Creates a text file.
    pub fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            media_type: "text/plain".into(),
            bytes: text.into().into_bytes().into(),
        }
    }

    /// Returns the maximum size of a file of this type, in bytes.
    pub fn max_bytes(&self) -> usize {
        if self.media_type.starts_with("image/") {
            Self::IMAGE_BYTES
        } else {
            Self::FILE_BYTES
        }
    }
}

impl std::fmt::Debug for AttachedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttachedFile")
            .field("name", &self.name)
            .field("media_type", &self.media_type)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// Returns the media type of an image that models can read, or `None` for other bytes. The first bytes decide, because
/// names and senders may be wrong.
pub fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// The store of the attachments' bytes.
pub trait AttachmentStore: Send + Sync {
    /// Stores bytes for a user and returns their digest. Equal bytes are stored once. Bytes that no event refers to are
    /// deleted after a day.
    fn put<'a>(
        &'a self,
        user: &'a UserId,
        bytes: Arc<[u8]>,
    ) -> BoxFuture<'a, Result<Text, StoreError>>;

    /// Reads bytes that were stored for a user, by their digest.
    fn read<'a>(
        &'a self,
        user: &'a UserId,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>>;
}

/// The bytes of the attachments of a request, by digest.
pub type AttachmentContents = BTreeMap<Text, Arc<[u8]>>;
