//! Extracts the content of a page: its main text as Markdown, its tables, or its links. It reads the rendered documents
//! ([`Scene`]), so it skips hidden text and includes shadow trees and frames.

mod cut;
mod html;
mod tables;

use crate::observe::{Scene, one_line, quote};
use crate::{BrowserError, Page};
use lango_documents::{Link, markdown, read_html};
use serde_json::json;
use std::collections::HashSet;

#[derive(Debug, Clone, Default)]
pub struct ExtractOptions {
    /// The handle of the element to read; `None` for the whole page.
    pub scope: Option<String>,
    pub part: ExtractedPart,
    pub format: ExtractFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExtractedPart {
    /// The text: the main content of a page, or the whole text of an element.
    #[default]
    Page,
    Tables,
    /// The links with their URLs.
    Links,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExtractFormat {
    #[default]
    Markdown,
    /// Only for tables and links.
    Json,
    /// All visible text, without markup.
    Text,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedContent {
    pub text: String,
    /// The links in the text.
    pub links: Vec<Link>,
    /// Whether the text ends early because the page is too large.
    pub was_cut: bool,
}

impl Page {
    /// Extracts a part of the page. Reads only the start of a page that is too large to be captured.
    pub async fn extract(
        &self,
        options: &ExtractOptions,
    ) -> Result<ExtractedContent, BrowserError> {
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
            ExtractedPart::Tables => complete_text(tables::write(&scene, scope, options.format)),
            ExtractedPart::Links => write_links(links_of(&scene, scope), options.format),
        })
    }
}

fn complete_text(text: String) -> ExtractedContent {
    ExtractedContent {
        text,
        links: Vec::new(),
        was_cut: false,
    }
}

fn read(html: &str, url: &str, options: &ExtractOptions, has_scope: bool) -> ExtractedContent {
    if options.part == ExtractedPart::Links {
        return write_links(markdown(html, url).links, options.format);
    }
    if has_scope || options.format == ExtractFormat::Text {
        return complete_text(read_html(html).text);
    }
    let readable = markdown(html, url);
    let mut text = String::new();
    if let Some(date) = &readable.date {
        text.push_str(&format!("Published: {}\n", one_line(date)));
    }
    text.push_str(&readable.markdown);
    ExtractedContent {
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

fn write_links(links: Vec<Link>, format: ExtractFormat) -> ExtractedContent {
    let mut text = String::new();
    for Link { text: name, url } in &links {
        let line = match format {
            ExtractFormat::Json => json!({ "text": name, "url": url }).to_string(),
            ExtractFormat::Markdown | ExtractFormat::Text => format!("- {} {url}", quote(name)),
        };
        text.push_str(&line);
        text.push('\n');
    }
    ExtractedContent {
        text,
        links,
        was_cut: false,
    }
}
