//! The text of a PDF, page by page.
//!
//! The library that parses it has bounds on nesting, and on what a compressed page becomes; a panic in it is caught and
//! is then one more file that cannot be read. A file of many pages that all unpack to much is read for a while only.

use lopdf::{Document, LoadOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How many pages are read.
const MOST_PAGES: usize = 5000;

/// How many bytes the drawing of one page has at most when it is unpacked.
const MOST_PAGE_BYTES: usize = 20_000_000;

/// How much text is taken of all pages.
const MOST_TEXT_BYTES: usize = 20_000_000;

/// How many bytes a part of the file that is unpacked on opening has at most.
const MOST_OBJECT_BYTES: usize = 50_000_000;

/// How long pages are read, from the opening of the file; a page that was begun is finished.
const READ_TIME: Duration = Duration::from_secs(20);

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
    read_pdf_within(bytes, READ_TIME)
}

fn read_pdf_within(bytes: &[u8], limit: Duration) -> Result<Vec<PdfPage>, String> {
    catch_unwind(AssertUnwindSafe(|| pages(bytes, limit)))
        .unwrap_or_else(|_| Err("it is a broken PDF".to_owned()))
}

fn pages(bytes: &[u8], limit: Duration) -> Result<Vec<PdfPage>, String> {
    let started = Instant::now();
    let options = LoadOptions::with_max_decompressed_size(MOST_OBJECT_BYTES);
    let document = Document::load_mem_with_options(bytes, options)
        .map_err(|error| format!("it is a broken PDF: {error}"))?;
    if document.is_encrypted() {
        return Err("it is an encrypted PDF".to_owned());
    }
    let mut found = Vec::new();
    let mut left = MOST_TEXT_BYTES;
    let mut is_late = false;
    for number in document.get_pages().into_keys().take(MOST_PAGES) {
        is_late = started.elapsed() >= limit;
        if is_late {
            break;
        }
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
    if found.is_empty() && is_late {
        let seconds = limit.as_secs_f32();
        return Err(format!(
            "it is a PDF that cannot be read within {seconds} s; its pages unpack to too much"
        ));
    }
    if found.is_empty() {
        return Err("it is a PDF without text; were its pages scanned?".to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lopdf::{Object, Stream, dictionary};

    /// A PDF whose pages all draw the same stream.
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
    fn a_file_whose_pages_unpack_to_much_is_read_for_a_while_only() {
        let file = repeating(b"BT (words) Tj ET\n".repeat(60_000), 2000);
        let started = Instant::now();
        let read = read_pdf_within(&file, Duration::from_millis(300));
        let took = started.elapsed();
        assert!(took < Duration::from_secs(20), "{took:?}");
        // The first page was begun in time.
        assert!(read.is_err() || read.is_ok_and(|pages| pages.len() < 2000));
    }

    #[test]
    fn a_file_that_is_not_read_in_time_says_so() {
        let file = repeating(b"BT (words) Tj ET".to_vec(), 2);
        let reason = read_pdf_within(&file, Duration::ZERO).unwrap_err();
        assert!(reason.contains("cannot be read within 0 s"), "{reason}");
    }
}
