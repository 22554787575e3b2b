//! Converts the bytes of a file to chunks: text, Markdown, HTML, PDF and source code.
//!
//! A file that cannot be read gives a reason, never a panic.

use super::chunk::{Chunk, Structure, chunks};
use lango_documents::{decode_text, is_pdf, read_html, read_pdf};
use std::path::Path;

/// Incremented when the same bytes give different chunks, so that stored documents count as changed.
pub(super) const READER_VERSION: u8 = 3;

/// Maximum size of a file.
pub(super) const MAX_FILE_BYTES: u64 = 20_000_000;

/// The content of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// The title in the file, or the file name.
    pub title: String,
    /// Its chunks; their position is a line, or a page of a PDF.
    pub chunks: Vec<Chunk>,
}

/// Converts the bytes of the file with this name. The error is the reason why it cannot be used.
pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Content, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let extension = extension.to_lowercase();
    let content = if is_pdf(bytes) {
        titled(None, pdf_chunks(bytes)?)
    } else {
        let text = decode_text(bytes)?;
        match extension.as_str() {
            "html" | "htm" | "xhtml" => {
                let page = read_html(&text);
                titled(page.title, chunks(&page.text, Structure::Markdown))
            }
            "md" | "markdown" | "mdx" => {
                let title = text.lines().find_map(|line| line.strip_prefix("# "));
                let title = title.map(|title| title.trim().to_owned());
                titled(title, chunks(&text, Structure::Markdown))
            }
            extension if CODE.contains(&extension) => titled(None, chunks(&text, Structure::Code)),
            _ => titled(None, chunks(&text, Structure::Plain)),
        }
    };
    if content.chunks.is_empty() {
        return Err("it contains no text".to_owned());
    }
    let title = if content.title.is_empty() {
        name.into_owned()
    } else {
        content.title.chars().take(200).collect()
    };
    Ok(Content { title, ..content })
}

/// The file extensions of source code.
const CODE: [&str; 38] = [
    "rs", "py", "js", "mjs", "ts", "tsx", "jsx", "go", "c", "h", "cc", "cpp", "hpp", "cs", "java",
    "kt", "scala", "swift", "rb", "php", "pl", "lua", "sh", "bash", "zsh", "fish", "sql", "r",
    "jl", "hs", "ml", "ex", "exs", "erl", "clj", "zig", "dart", "vue",
];

/// Returns the chunks of a PDF; their position is the page.
fn pdf_chunks(bytes: &[u8]) -> Result<Vec<Chunk>, String> {
    let mut found = Vec::new();
    for page in read_pdf(bytes)? {
        let on_page = chunks(&page.text, Structure::Plain).into_iter();
        found.extend(on_page.map(|chunk| Chunk {
            line: u64::from(page.number),
            ..chunk
        }));
    }
    Ok(found)
}

fn titled(title: Option<String>, chunks: Vec<Chunk>) -> Content {
    Content {
        title: title.unwrap_or_default(),
        chunks,
    }
}

#[cfg(test)]
mod tests;
