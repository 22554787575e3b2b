//! The line of an attachment: its digest, and its bytes in base64. It precedes the first event that refers to the attachment.

use super::errors;
use crate::attachments::{MAX_ATTACHMENT_BYTES, digest_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lango_core::{SessionId, Text};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) const PREFIX: &str = "{\"lango_attachment\":";

const FORMAT_VERSION: u32 = 1;

/// An attachment of a session, whose bytes match its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentLine {
    /// The session whose event refers to the attachment.
    pub session: SessionId,
    /// The SHA-256 of the bytes, in hexadecimal digits.
    pub digest: Text,
    pub bytes: Arc<[u8]>,
}

#[derive(Serialize, Deserialize)]
struct Fields<'a> {
    lango_attachment: u32,
    session: SessionId,
    digest: Text,
    #[serde(borrow)]
    bytes: &'a str,
}

const FIELDS: [&str; 4] = ["lango_attachment", "session", "digest", "bytes"];

pub fn format_attachment(
    session: &SessionId,
    digest: &Text,
    bytes: &[u8],
) -> serde_json::Result<String> {
    serde_json::to_string(&Fields {
        lango_attachment: FORMAT_VERSION,
        session: session.clone(),
        digest: digest.clone(),
        bytes: &STANDARD.encode(bytes),
    })
}

pub(super) fn parse(line: &str) -> Result<AttachmentLine, String> {
    let fields: Fields<'_> = serde_json::from_str(line)
        .map_err(|error| errors::describe(line, &error, "an attachment of an export", &FIELDS))?;
    if fields.lango_attachment != FORMAT_VERSION {
        return Err(format!(
            "the attachment's format version is {}, but this version of lango reads {FORMAT_VERSION}",
            fields.lango_attachment
        ));
    }
    let digest = &fields.digest;
    let bytes = STANDARD.decode(fields.bytes);
    let bytes = bytes.map_err(|_| format!("the bytes of attachment `{digest}` are not base64"))?;
    if bytes.len() > MAX_ATTACHMENT_BYTES {
        return Err(format!(
            "attachment `{digest}` is larger than {MAX_ATTACHMENT_BYTES} bytes"
        ));
    }
    if digest_of(&bytes) != *digest {
        return Err(format!(
            "the bytes of attachment `{digest}` do not match its digest"
        ));
    }
    let written = format_attachment(&fields.session, digest, &bytes);
    if !written.is_ok_and(|written| written == line) {
        return Err(super::CHANGED.to_owned());
    }
    Ok(AttachmentLine {
        session: fields.session,
        digest: fields.digest,
        bytes: bytes.into(),
    })
}
