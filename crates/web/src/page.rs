//! Converts a response to text that an agent can read.

use lango_documents::{ReadablePage, decode_page, is_pdf, markdown, read_pdf};
use lango_net::{FetchedResponse, header};
use serde::{Deserialize, Serialize};

/// Maximum length of a page's text in bytes; the rest is dropped, and a note says so.
const TEXT_BYTES: usize = 4 << 20;

/// The text of a page, stored in the cache and returned in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FetchedPage {
    /// The URL after the last redirect.
    pub url: String,
    pub title: Option<String>,
    pub date: Option<String>,
    pub site: Option<String>,
    pub text: String,
    pub links: Vec<String>,
    /// A note about missing content, if any.
    pub note: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Format {
    Html,
    Pdf,
    Text,
    /// The header does not say, so the format is detected from the bytes.
    Unspecified,
    Unreadable,
}

/// Converts a response to text. Fails with the reason if its format is not supported.
pub(crate) fn read(fetched: &FetchedResponse) -> Result<FetchedPage, String> {
    let content_type = fetched.headers.get(header::CONTENT_TYPE);
    let content_type = content_type
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let (media_type, charset) = split_content_type(content_type);
    let body = &fetched.body;
    let size = body.len();
    let mut format = format_of(&media_type);
    if is_pdf(body) {
        format = Format::Pdf;
    } else if format == Format::Unspecified {
        format = guess(body);
    }
    let mut page = match format {
        Format::Html => html(
            &decode_page(body, charset.as_deref()),
            fetched.final_url.as_str(),
        ),
        Format::Text => plain(decode_page(body, charset.as_deref()).into_owned()),
        Format::Pdf if fetched.was_cut => {
            return Err(format!(
                "the PDF has more than {size} bytes, which is the limit"
            ));
        }
        Format::Pdf => pdf(body)?,
        Format::Unspecified | Format::Unreadable => {
            let kind = if media_type.is_empty() {
                "content of an unknown type".to_owned()
            } else {
                format!("`{media_type}`")
            };
            return Err(format!(
                "it is {kind} with {size} bytes, which is not text; only HTML, text, JSON, XML and PDF can be read"
            ));
        }
    };
    page.url = fetched.final_url.to_string();
    if fetched.was_cut {
        page.note = Some(format!(
            "the page is longer than {size} bytes; only its start was read"
        ));
    }
    if page.text.len() > TEXT_BYTES {
        page.text
            .truncate(page.text.floor_char_boundary(TEXT_BYTES));
        page.note = Some(format!(
            "the text is longer than {TEXT_BYTES} bytes; only its start is included"
        ));
    }
    Ok(page)
}

fn html(text: &str, url: &str) -> FetchedPage {
    let ReadablePage {
        title,
        date,
        site,
        markdown,
        links,
        was_cut,
    } = markdown(text, url);
    let note = was_cut.then(|| "the page is nested too deeply; only its start was read".to_owned());
    FetchedPage {
        title,
        date,
        site,
        links: links.into_iter().map(|link| link.url).collect(),
        note,
        ..plain(markdown)
    }
}

fn plain(text: String) -> FetchedPage {
    FetchedPage {
        url: String::new(),
        title: None,
        date: None,
        site: None,
        text,
        links: Vec::new(),
        note: None,
    }
}

fn pdf(bytes: &[u8]) -> Result<FetchedPage, String> {
    let pages = read_pdf(bytes)?;
    let pages = pages
        .into_iter()
        .map(|page| format!("[page {}]\n\n{}\n\n", page.number, page.text.trim_end()));
    Ok(plain(pages.collect()))
}

/// Returns the media type in lower case, and the charset.
fn split_content_type(content_type: &str) -> (String, Option<String>) {
    let mut parts = content_type.split(';');
    let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    (media_type, charset)
}

fn format_of(media_type: &str) -> Format {
    const TEXT: [&str; 9] = [
        "application/json",
        "application/xml",
        "application/javascript",
        "application/ld+json",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/x-ndjson",
        "application/sql",
    ];
    match media_type {
        "text/html" | "application/xhtml+xml" => Format::Html,
        "application/pdf" => Format::Pdf,
        "" | "text/plain" | "application/octet-stream" | "binary/octet-stream" => {
            Format::Unspecified
        }
        known if TEXT.contains(&known) => Format::Text,
        known if known.starts_with("text/") => Format::Text,
        known if known.ends_with("+json") || known.ends_with("+xml") => {
            if known.starts_with("image/") {
                Format::Unreadable
            } else {
                Format::Text
            }
        }
        _ => Format::Unreadable,
    }
}

fn guess(body: &[u8]) -> Format {
    let start = &body[..body.len().min(1024)];
    let start = String::from_utf8_lossy(start)
        .trim_start()
        .to_ascii_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        Format::Html
    } else if lango_documents::decode_text(body).is_ok() {
        Format::Text
    } else {
        Format::Unreadable
    }
}
