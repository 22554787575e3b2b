//! From the bytes of a file to chunks: text, markdown, HTML, PDF, source code.
//!
//! What cannot be read is reported with a reason and is never fatal; nothing here panics out.

use super::chunk::{Chunk, Structure, chunks};
use lango_documents::{decode_text, is_pdf, read_html, read_pdf};
use std::path::Path;

/// Changes when the same bytes begin to give other chunks, so that what is stored counts as changed.
pub(super) const READER_VERSION: u8 = 3;

/// How many bytes a file has at most.
pub(super) const MOST_FILE_BYTES: u64 = 20_000_000;

/// What a file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// What it calls itself, or its name.
    pub title: String,
    /// Its chunks; where one begins is a line, or a page of a PDF.
    pub chunks: Vec<Chunk>,
}

/// Reads the bytes of the file of this name, or says why that cannot be done.
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
        return Err("there is no text in it".to_owned());
    }
    let title = if content.title.is_empty() {
        name.into_owned()
    } else {
        content.title.chars().take(200).collect()
    };
    Ok(Content { title, ..content })
}

/// The extensions of source code.
const CODE: [&str; 38] = [
    "rs", "py", "js", "mjs", "ts", "tsx", "jsx", "go", "c", "h", "cc", "cpp", "hpp", "cs", "java",
    "kt", "scala", "swift", "rb", "php", "pl", "lua", "sh", "bash", "zsh", "fish", "sql", "r",
    "jl", "hs", "ml", "ex", "exs", "erl", "clj", "zig", "dart", "vue",
];

/// The chunks of a PDF; where one begins is its page.
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
