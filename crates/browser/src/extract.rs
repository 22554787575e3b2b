//! Extracts the content of a page: its main text as Markdown, its tables, its links. Works on the rendered documents
//! ([`Scene`]), so it skips hidden text and includes shadow trees and frames.

mod cut;
mod html;
mod tables;

use crate::observe::{Scene, one_line, quote};
use crate::{BrowserError, Page};
use lango_documents::{Link, markdown, read_html};
use serde_json::json;
use std::collections::HashSet;

/// Options of an extraction.
#[derive(Debug, Clone, Default)]
pub struct ExtractOptions {
    /// The handle of the element to read; the whole page if none.
    pub scope: Option<String>,
    /// Which part.
    pub part: ExtractedPart,
    /// How to write it.
    pub format: ExtractFormat,
}

/// A part of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExtractedPart {
    /// The text: the main content of a page, all of an element.
    #[default]
    Page,
    /// The tables.
    Tables,
    /// The links with their addresses.
    Links,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExtractFormat {
    /// Markdown.
    #[default]
    Markdown,
    /// JSON, for tables and links.
    Json,
    /// All visible text, without markup.
    Text,
}

/// The extracted content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extract {
    /// The whole text.
    pub text: String,
    /// The links in it.
    pub links: Vec<Link>,
    /// Whether the page was too large to be read to its end.
    pub was_cut: bool,
}

impl Page {
    /// Reads a part of the page.
    pub async fn extract(&self, options: &ExtractOptions) -> Result<Extract, BrowserError> {
        if options.part == ExtractedPart::Page && options.format == ExtractFormat::Json {
            return Err(BrowserError::Argument {
                message: "the format `json` is for tables and links; use `markdown` or `text` for the page".to_owned(),
            });
        }
        let element = match &options.scope {
            Some(handle) => Some((handle, self.element(handle)?)),
            None => None,
        };
        let scene = match Scene::capture(self).await {
            Err(BrowserError::PageTooLarge) if options.part != ExtractedPart::Tables => {
                let element = element.map(|(_, element)| element);
                let html = self.cut_html(element.as_ref()).await?;
                let mut extract = read(&html, &self.url(), options, element.is_some());
                extract.was_cut = true;
                return Ok(extract);
            }
            scene => scene?,
        };
        let scope = match &element {
            None => None,
            Some((handle, element)) => {
                Some(
                    scene
                        .find(&element.key())
                        .ok_or_else(|| BrowserError::StaleHandle {
                            handle: (*handle).clone(),
                        })?,
                )
            }
        };
        Ok(match options.part {
            ExtractedPart::Page => read(
                &html::write(&scene, scope),
                &self.url(),
                options,
                scope.is_some(),
            ),
            ExtractedPart::Tables => whole(tables::write(&scene, scope, options.format)),
            ExtractedPart::Links => write_links(links_of(&scene, scope), options.format),
        })
    }
}

fn whole(text: String) -> Extract {
    Extract {
        text,
        links: Vec::new(),
        was_cut: false,
    }
}

fn read(html: &str, url: &str, options: &ExtractOptions, has_scope: bool) -> Extract {
    if options.part == ExtractedPart::Links {
        return write_links(markdown(html, url).links, options.format);
    }
    if has_scope || options.format == ExtractFormat::Text {
        return whole(read_html(html).text);
    }
    let readable = markdown(html, url);
    let mut text = String::new();
    if let Some(date) = &readable.date {
        text.push_str(&format!("Published: {}\n", one_line(date)));
    }
    text.push_str(&readable.markdown);
    Extract {
        text,
        links: readable.links,
        was_cut: readable.was_cut,
    }
}

/// Returns the visible links, each URL once.
fn links_of(scene: &Scene, scope: Option<usize>) -> Vec<Link> {
    let places = scope.map_or(0..scene.len(), |scope| scene.below(scope));
    let mut known = HashSet::new();
    let mut links = Vec::new();
    for at in places {
        if let Some(url) = scene.link(at).filter(|_| scene.is_shown(at))
            && known.insert(url.clone())
        {
            links.push(Link {
                text: scene.text_below(at, 200),
                url: url.to_string(),
            });
        }
    }
    links
}

fn write_links(links: Vec<Link>, format: ExtractFormat) -> Extract {
    let mut text = String::new();
    for Link { text: name, url } in &links {
        let line = match format {
            ExtractFormat::Json => json!({ "text": name, "url": url }).to_string(),
            ExtractFormat::Markdown | ExtractFormat::Text => format!("- {} {url}", quote(name)),
        };
        text.push_str(&line);
        text.push('\n');
    }
    Extract {
        text,
        links,
        was_cut: false,
    }
}
