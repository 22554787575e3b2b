//! Converts a file to an attachment, by its content: images stay as they are, documents become text.

use crate::{decode_unicode, is_pdf, read_html, read_pdf};
use lango_core::AttachedFile;

/// The reason why a file cannot be attached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachmentError {
    #[error("`{name}` has {size} bytes; {kind} may have {limit} at most")]
    TooLarge {
        name: String,
        /// `an image`, `a file` or `the text of a file`.
        kind: &'static str,
        /// The size in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// Files of this kind cannot be shown to models.
    #[error(
        "`{name}` cannot be attached: it is not a PNG, JPEG, GIF or WebP image, UTF-8 text, HTML or PDF"
    )]
    NotSupported { name: String },
    /// The document has no readable text.
    #[error("`{name}` cannot be attached: {reason}")]
    NoText { name: String, reason: String },
}

/// Converts the bytes of a file to an attachment. Text, HTML and PDF become plain text under the name of the file.
pub fn read_attachment(name: &str, bytes: Vec<u8>) -> Result<AttachedFile, AttachmentError> {
    if bytes.len() > AttachedFile::FILE_BYTES {
        return Err(too_large(
            name,
            "a file",
            bytes.len(),
            AttachedFile::FILE_BYTES,
        ));
    }
    if lango_core::image_type(&bytes).is_some() {
        if bytes.len() > AttachedFile::IMAGE_BYTES {
            return Err(too_large(
                name,
                "an image",
                bytes.len(),
                AttachedFile::IMAGE_BYTES,
            ));
        }
        return AttachedFile::image(name, bytes).ok_or_else(|| not_supported(name));
    }
    let text = text_of(name, &bytes)?;
    if text.trim().is_empty() {
        return Err(AttachmentError::NoText {
            name: name.to_owned(),
            reason: "it has no text".to_owned(),
        });
    }
    if text.len() > AttachedFile::FILE_BYTES {
        return Err(too_large(
            name,
            "the text of a file",
            text.len(),
            AttachedFile::FILE_BYTES,
        ));
    }
    Ok(AttachedFile::text(name, text))
}

fn text_of(name: &str, bytes: &[u8]) -> Result<String, AttachmentError> {
    if is_pdf(bytes) {
        let pages = read_pdf(bytes).map_err(|reason| AttachmentError::NoText {
            name: name.to_owned(),
            reason,
        })?;
        let pages = pages
            .into_iter()
            .map(|page| format!("[page {}]\n{}\n", page.number, page.text.trim_end()));
        return Ok(pages.collect());
    }
    let text = decode_unicode(bytes).ok_or_else(|| not_supported(name))?;
    if is_html(name, &text) {
        let page = read_html(&text);
        let title = page.title.map(|title| format!("{title}\n\n"));
        return Ok(title.unwrap_or_default() + page.text.trim());
    }
    Ok(text.into_owned())
}

/// Returns whether a text is an HTML page, judging by its start or its file name.
fn is_html(name: &str, text: &str) -> bool {
    let start = text.trim_start();
    let starts_with = |prefix: &str| {
        start
            .get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let is_named = extension.is_some_and(|extension| {
        ["html", "htm", "xhtml"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    });
    is_named || starts_with("<!doctype html") || starts_with("<html")
}

fn too_large(name: &str, kind: &'static str, size: usize, limit: usize) -> AttachmentError {
    AttachmentError::TooLarge {
        name: name.to_owned(),
        kind,
        size,
        limit,
    }
}

fn not_supported(name: &str) -> AttachmentError {
    AttachmentError::NotSupported {
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{AttachmentError, read_attachment};
    use lango_core::AttachedFile;

    fn text(name: &str, bytes: &[u8]) -> String {
        let file = read_attachment(name, bytes.to_vec()).unwrap();
        assert_eq!((&*file.name, &*file.media_type), (name, "text/plain"));
        String::from_utf8(file.bytes.to_vec()).unwrap()
    }

    #[test]
    fn images_are_recognized_by_their_first_bytes_whatever_their_name() {
        let kinds: [(&[u8], &str); 4] = [
            (b"\x89PNG\r\n\x1a\nrest", "image/png"),
            (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
            (b"GIF89arest", "image/gif"),
            (b"RIFF\x01\x02\x03\x04WEBPrest", "image/webp"),
        ];
        for (bytes, media_type) in kinds {
            let file = read_attachment("notes.txt", bytes.to_vec()).unwrap();
            assert_eq!(&*file.media_type, media_type);
            assert_eq!(&*file.bytes, bytes);
        }
    }

    #[test]
    fn text_is_unchanged_and_html_becomes_its_visible_text() {
        assert_eq!(
            text("a.rs", "fn main() {} // ä\n".as_bytes()),
            "fn main() {} // ä\n"
        );
        assert_eq!(text("a.txt", b"\xef\xbb\xbfhi"), "hi");
        let page = b" <!DOCTYPE html><title>Wings</title><script>x()</script><p>Lift</p>";
        assert_eq!(text("page", page), "Wings\n\nLift");
    }

    #[test]
    fn unsupported_broken_and_empty_files_are_refused() {
        for bytes in [&b"PK\x03\x04\0\0"[..], b"\x7fELF\0", b"caf\xe9"] {
            let error = read_attachment("x.bin", bytes.to_vec()).unwrap_err();
            assert!(
                matches!(error, AttachmentError::NotSupported { .. }),
                "{error}"
            );
        }
        let error = read_attachment("x.pdf", b"%PDF-1.5\nnothing".to_vec()).unwrap_err();
        assert!(error.to_string().contains("it is a broken PDF"), "{error}");
        let error = read_attachment("x.txt", b" \n".to_vec()).unwrap_err();
        assert!(error.to_string().contains("no text"), "{error}");
    }

    #[test]
    fn files_that_are_too_large_are_refused_with_their_size_and_the_limit() {
        let mut image = b"\x89PNG\r\n\x1a\n".to_vec();
        image.resize(AttachedFile::IMAGE_BYTES + 1, 0);
        let error = read_attachment("big.png", image).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`big.png` has 5000001 bytes; an image may have 5000000 at most"
        );
        let error = read_attachment("big.txt", vec![b'a'; AttachedFile::FILE_BYTES + 1]);
        assert_eq!(
            error.unwrap_err().to_string(),
            "`big.txt` has 10000001 bytes; a file may have 10000000 at most"
        );
    }
}
