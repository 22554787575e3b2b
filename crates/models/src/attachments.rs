//! Attachments in requests: text as text, images as base64, and a placeholder for what a model cannot see.

use crate::wire::Target;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lango_core::{Attachment, AttachmentContents};

/// One content part of a request that shows an attachment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AttachmentPart<'a> {
    Text(String),
    Image {
        media_type: &'a str,
        /// The bytes in base64.
        data: String,
    },
}

impl AttachmentPart<'_> {
    /// Returns an image as a `data:` URL.
    pub(crate) fn data_url(media_type: &str, data: &str) -> String {
        format!("data:{media_type};base64,{data}")
    }
}

/// Returns the parts for these attachments, in their order.
pub(crate) fn attachment_parts<'a>(
    attachments: &'a [Attachment],
    contents: &AttachmentContents,
    target: &Target<'_>,
) -> Vec<AttachmentPart<'a>> {
    let mut parts = Vec::with_capacity(2 * attachments.len());
    for attachment in attachments {
        let name = &attachment.name;
        parts.push(AttachmentPart::Text(
            match contents.get(&attachment.digest) {
                Some(bytes) if attachment.is_text() => {
                    let text = String::from_utf8_lossy(bytes);
                    // A file cannot contain its own digest, so it cannot forge the end mark and pose as other text.
                    let mark = attachment.digest.get(..16).unwrap_or(&attachment.digest);
                    format!("[file `{name}` {mark}]\n{text}\n[end of file `{name}` {mark}]")
                }
                // A delegation refers to the image by this name.
                Some(_) if attachment.is_image() && target.sees_images => {
                    format!("[image `{name}`]")
                }
                Some(_) => placeholder(attachment, "this model cannot see it"),
                None => placeholder(attachment, "its content was deleted"),
            },
        ));
        let bytes = contents.get(&attachment.digest);
        let seen = bytes.filter(|_| attachment.is_image() && target.sees_images);
        parts.extend(seen.map(|bytes| AttachmentPart::Image {
            media_type: &attachment.media_type,
            data: STANDARD.encode(bytes),
        }));
    }
    parts
}

fn placeholder(attachment: &Attachment, reason: &str) -> String {
    let Attachment {
        name,
        media_type,
        size,
        ..
    } = attachment;
    format!("[attachment `{name}` ({media_type}, {size} bytes) is not shown: {reason}]")
}
