//! Files that belong to a message. Events hold references; the bytes are stored once per user, under their digest.

use crate::{BoxFuture, StoreError, Text, UserId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A reference to a stored file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The name that people and models know it by, unique within its session.
    pub name: Text,
    /// An image's media type, or `text/…` for everything that was attached as text.
    pub media_type: Text,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub digest: Text,
    /// The size in bytes.
    pub size: u64,
}

impl Attachment {
    /// Whether it is an image.
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }

    /// Whether it is text that every model can read.
    pub fn is_text(&self) -> bool {
        self.media_type.starts_with("text/")
    }
}

/// Where the bytes of attachments are.
pub trait AttachmentStore: Send + Sync {
    /// Stores bytes of a user, once however often they are stored, and returns their digest. Bytes that no event refers
    /// to are deleted after a day.
    fn put<'a>(
        &'a self,
        user: &'a UserId,
        bytes: Arc<[u8]>,
    ) -> BoxFuture<'a, Result<Text, StoreError>>;

    /// Reads bytes of a user by their digest.
    fn read<'a>(
        &'a self,
        user: &'a UserId,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>>;
}

/// The bytes of the attachments of a request, by digest.
pub type AttachmentContents = BTreeMap<Text, Arc<[u8]>>;
