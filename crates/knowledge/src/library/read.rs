//! From the bytes of a file to chunks: text, markdown, HTML, PDF, source code.
//!
//! What cannot be read is reported with a reason and is never fatal; nothing here panics out.

mod html;
mod pdf;
mod text;

use super::chunk::{Chunk, LONGEST_HEADING, Structure, chunks};
use std::path::Path;

/// Changes when the same bytes begin to give other chunks, so that what is stored counts as changed.
pub(super) const READER_VERSION: u8 = 2;

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
    let content = if bytes.starts_with(b"%PDF-") {
        pdf::read(bytes)?
    } else {
        let text = text::decode(bytes)?;
        match extension.as_str() {
            "html" | "htm" | "xhtml" => {
                let page = html::read(&text);
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
        content.title.chars().take(LONGEST_HEADING).collect()
    };
    Ok(Content { title, ..content })
}

/// The extensions of source code.
const CODE: [&str; 38] = [
    "rs", "py", "js", "mjs", "ts", "tsx", "jsx", "go", "c", "h", "cc", "cpp", "hpp", "cs", "java",
    "kt", "scala", "swift", "rb", "php", "pl", "lua", "sh", "bash", "zsh", "fish", "sql", "r",
    "jl", "hs", "ml", "ex", "exs", "erl", "clj", "zig", "dart", "vue",
];

fn titled(title: Option<String>, chunks: Vec<Chunk>) -> Content {
    Content {
        title: title.unwrap_or_default(),
        chunks,
    }
}

#[cfg(test)]
mod tests;
