//! The text of documents: plain text in its encodings, HTML, PDF; and [`read_attachment`], which makes the bytes of a file
//! into an attachment that a model can be shown.
//!
//! Nothing here reads files or waits. Input may be hostile: what cannot be read is an error, and no error is a panic.

mod attachment;
mod html;
mod pdf;
mod text;

pub use attachment::{AttachmentError, read_attachment};
pub use html::{HtmlText, Link, Readable, markdown, read_html};
pub use pdf::{PdfPage, is_pdf, read_pdf};
pub use text::{decode_page, decode_text, decode_unicode};
