//! The text of a PDF, page by page.
//!
//! The library that parses it has bounds on nesting, and on what a compressed page becomes; a panic in it is caught and
//! is then one more file that cannot be read.

use lopdf::{Document, LoadOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many pages are read.
const MOST_PAGES: usize = 5000;

/// How many bytes the drawing of one page has at most when it is unpacked.
const MOST_PAGE_BYTES: usize = 20_000_000;

/// How much text is taken of all pages.
const MOST_TEXT_BYTES: usize = 20_000_000;

/// How many bytes a part of the file that is unpacked on opening has at most.
const MOST_OBJECT_BYTES: usize = 50_000_000;

/// The text of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct PdfPage {
    /// Its number, from 1.
    pub number: u32,
    /// Its text.
    pub text: String,
}

/// Whether bytes begin as those of a PDF do.
pub fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

/// The pages of a PDF that have text, or why there are none.
pub fn read_pdf(bytes: &[u8]) -> Result<Vec<PdfPage>, String> {
    catch_unwind(AssertUnwindSafe(|| pages(bytes)))
        .unwrap_or_else(|_| Err("it is a broken PDF".to_owned()))
}

fn pages(bytes: &[u8]) -> Result<Vec<PdfPage>, String> {
    let options = LoadOptions::with_max_decompressed_size(MOST_OBJECT_BYTES);
    let document = Document::load_mem_with_options(bytes, options)
        .map_err(|error| format!("it is a broken PDF: {error}"))?;
    if document.is_encrypted() {
        return Err("it is an encrypted PDF".to_owned());
    }
    let mut found = Vec::new();
    let mut left = MOST_TEXT_BYTES;
    for number in document.get_pages().into_keys().take(MOST_PAGES) {
        let parts = document.extract_text_chunks_with_limit(&[number], MOST_PAGE_BYTES);
        // A part of a page that cannot be read leaves the others.
        let text: String = parts.into_iter().flatten().collect();
        left = left.saturating_sub(text.len());
        if left == 0 {
            break;
        }
        if !text.trim().is_empty() {
            found.push(PdfPage { number, text });
        }
    }
    if found.is_empty() {
        return Err("it is a PDF without text; were its pages scanned?".to_owned());
    }
    Ok(found)
}
