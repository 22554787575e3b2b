//! Reads the text of a PDF, page by page.
//!
//! The parsing library limits nesting and the size of decompressed pages. If it panics, the panic is caught and the
//! file counts as unreadable. A file with many large pages is read only until a timeout.

use lopdf::{Document, LoadOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Maximum number of pages to read.
const MAX_PAGES: usize = 5000;

/// Maximum size of a page's decompressed content stream.
const MAX_PAGE_BYTES: usize = 20_000_000;

/// Maximum length of the text of all pages.
const MAX_TEXT_BYTES: usize = 20_000_000;

/// Maximum size of an object that is decompressed when the file is opened.
const MAX_OBJECT_BYTES: usize = 50_000_000;

/// Maximum time to read the file. It is checked before each page, so a page that has been started is finished.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, PartialEq, Eq)]
pub struct PdfPage {
    /// Starts at 1.
    pub number: u32,
    pub text: String,
}

/// Returns whether bytes start like a PDF.
pub fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

/// Returns the pages of a PDF that have text. Fails with the reason if there are none.
pub fn read_pdf(bytes: &[u8]) -> Result<Vec<PdfPage>, String> {
    read_pdf_within(bytes, READ_TIMEOUT)
}

fn read_pdf_within(bytes: &[u8], limit: Duration) -> Result<Vec<PdfPage>, String> {
    catch_unwind(AssertUnwindSafe(|| pages(bytes, limit)))
        .unwrap_or_else(|_| Err("it is a broken PDF".to_owned()))
}

fn pages(bytes: &[u8], limit: Duration) -> Result<Vec<PdfPage>, String> {
    let started = Instant::now();
    let options = LoadOptions::with_max_decompressed_size(MAX_OBJECT_BYTES);
    let document = Document::load_mem_with_options(bytes, options)
        .map_err(|error| format!("it is a broken PDF: {error}"))?;
    if document.is_encrypted() {
        return Err("the PDF is encrypted".to_owned());
    }
    let mut found = Vec::new();
    let mut left = MAX_TEXT_BYTES;
    let mut is_late = false;
    for number in document.get_pages().into_keys().take(MAX_PAGES) {
        is_late = started.elapsed() >= limit;
        if is_late {
            break;
        }
        let parts = document.extract_text_chunks_with_limit(&[number], MAX_PAGE_BYTES);
        // Unreadable parts of a page are skipped.
        let text: String = parts.into_iter().flatten().collect();
        left = left.saturating_sub(text.len());
        if left == 0 {
            break;
        }
        if !text.trim().is_empty() {
            found.push(PdfPage { number, text });
        }
    }
    if found.is_empty() && is_late {
        let seconds = limit.as_secs_f32();
        return Err(format!(
            "the PDF cannot be read within {seconds} s; its pages are too large"
        ));
    }
    if found.is_empty() {
        return Err("the PDF has no text; its pages may be scanned images".to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lopdf::{Object, Stream, dictionary};

    /// Builds a PDF whose pages all have the same content stream.
    fn repeating(content: Vec<u8>, count: usize) -> Vec<u8> {
        let mut document = Document::with_version("1.5");
        let pages = document.new_object_id();
        let mut stream = Stream::new(dictionary! {}, content);
        stream.compress().unwrap();
        let content = document.add_object(stream);
        let page = dictionary! { "Type" => "Page", "Parent" => pages, "Contents" => content };
        let kids: Vec<Object> = (0..count)
            .map(|_| document.add_object(page.clone()).into())
            .collect();
        let count = i64::try_from(count).unwrap();
        let tree = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count };
        document.objects.insert(pages, Object::Dictionary(tree));
        let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages });
        document.trailer.set("Root", catalog);
        let mut bytes = Vec::new();
        document.save_to(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_file_with_many_large_pages_is_read_only_until_the_timeout() {
        let file = repeating(b"BT (words) Tj ET\n".repeat(60_000), 2000);
        let started = Instant::now();
        let read = read_pdf_within(&file, Duration::from_millis(300));
        let took = started.elapsed();
        assert!(took < Duration::from_secs(20), "{took:?}");
        // Only the pages that were started before the timeout are read.
        assert!(read.is_err() || read.is_ok_and(|pages| pages.len() < 2000));
    }

    #[test]
    fn a_file_that_cannot_be_read_in_time_fails_with_that_reason() {
        let file = repeating(b"BT (words) Tj ET".to_vec(), 2);
        let reason = read_pdf_within(&file, Duration::ZERO).unwrap_err();
        assert!(reason.contains("cannot be read within 0 s"), "{reason}");
    }
}
