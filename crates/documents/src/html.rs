//! Converts HTML to Markdown: a whole page ([`read_html`]), or its main content with its metadata ([`markdown`]).
//!
//! Hidden text (`hidden`, `display:none`, zero-width characters) is left out, so that a model reads what a user sees.

mod dom;
mod markdown;
mod metadata;
mod names;
mod readable;
mod table;
mod writer;

pub use markdown::Link;

use dom::Dom;
use markdown::{Options, render};
use readable::{Selection, outline, select, whole};
use url::Url;

/// The text of a whole page as Markdown, without the targets of links.
#[derive(Debug, PartialEq, Eq)]
pub struct HtmlText {
    pub title: Option<String>,
    /// All visible text.
    pub text: String,
}

/// The main content of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadablePage {
    pub title: Option<String>,
    /// The publication date: `2026-11-16`, or as the page writes it.
    pub date: Option<String>,
    /// The name of the site, or its host.
    pub site: Option<String>,
    /// The content as Markdown, with absolute links.
    pub markdown: String,
    /// The links in the content.
    pub links: Vec<Link>,
    /// Whether the end is missing because the page is nested too deeply or too large.
    pub was_cut: bool,
}

/// A page counts as a list of links, and is returned whole, if its main content has less than `MIN_SHARE` of the
/// visible text, or has fewer than `SHORT_LENGTH` characters and less than `MIN_SHARE_OF_SHORT` of the visible text.
const MIN_SHARE: f64 = 0.05;
const SHORT_LENGTH: usize = 200;
const MIN_SHARE_OF_SHORT: f64 = 0.15;

/// Reads all text of a page.
pub fn read_html(html: &str) -> HtmlText {
    let dom = Dom::parse(html);
    let (text, _) = render_selection(&dom, &whole(&dom, Dom::ROOT), None);
    let title = dom.first("title").map(|title| dom.line(title));
    HtmlText {
        title: title.filter(|title| !title.is_empty()),
        text,
    }
}

/// Reads the main content of a page. `base_url` is the URL of the page; if it is not valid, links become plain text.
pub fn markdown(html: &str, base_url: &str) -> ReadablePage {
    let dom = Dom::parse(html);
    let page = Url::parse(base_url).ok();
    let metadata = metadata::read(&dom, page.as_ref());
    let base = metadata.base.as_ref().or(page.as_ref());
    let body = dom.first("body").unwrap_or(Dom::ROOT);
    let (markdown, links) = render_selection(&dom, &selection_of(&dom, body), base);
    let host = page.as_ref().and_then(Url::host_str).map(str::to_owned);
    ReadablePage {
        title: metadata.title,
        date: metadata.date,
        site: metadata.site.or(host),
        markdown,
        links,
        was_cut: dom.was_cut,
    }
}

/// Selects the main content, or the whole page if it is a list of links.
fn selection_of(dom: &Dom, body: usize) -> Selection {
    let main = select(dom, body);
    let outline = outline(dom, body);
    let min_share = if main.length < SHORT_LENGTH {
        MIN_SHARE_OF_SHORT
    } else {
        MIN_SHARE
    };
    if (main.length as f64) < min_share * outline.length as f64 {
        outline
    } else {
        main
    }
}

fn render_selection(dom: &Dom, selection: &Selection, base: Option<&Url>) -> (String, Vec<Link>) {
    let options = Options {
        base,
        dropped: &|node| selection.is_dropped(node),
    };
    render(dom, &selection.nodes, &options)
}
