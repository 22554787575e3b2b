//! Reads the text of documents: plain text in various encodings, HTML and PDF. [`read_attachment`] converts the bytes
//! of a file to an attachment for a model.
//!
//! This crate performs no I/O. Input may be hostile: unreadable input is an error, never a panic.

mod attachment;
mod html;
mod pdf;
mod text;

pub use attachment::{AttachmentError, read_attachment};
pub use html::{HtmlText, Link, ReadablePage, markdown, read_html};
pub use pdf::{PdfPage, is_pdf, read_pdf};
pub use text::{decode_page, decode_text, decode_unicode};
