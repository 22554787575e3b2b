//! HTML as Markdown: a whole page ([`read_html`]), or its main content with what it says about itself ([`markdown`]).
//!
//! Hidden text (`hidden`, `display:none`, characters without width) is left out, so that a model reads what a person sees.

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

/// The text of a whole page as Markdown without the targets of links.
#[derive(Debug, PartialEq, Eq)]
pub struct HtmlText {
    /// The page's own title.
    pub title: Option<String>,
    /// All text that is shown.
    pub text: String,
}

/// The main content of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable {
    /// The page's own title.
    pub title: Option<String>,
    /// When it was published: `2026-11-16`, or as the page writes it.
    pub date: Option<String>,
    /// The name of the site, or its host.
    pub site: Option<String>,
    /// The content as Markdown, with absolute links.
    pub markdown: String,
    /// The links in the content.
    pub links: Vec<Link>,
    /// Whether the page was too deep or too large to be parsed to its end.
    pub was_cut: bool,
}

/// A page is a list of links, and returned whole, if its content has less than the first share of the visible text, or
/// if its content is short (in characters) and has less than the second share.
const LEAST_SHARE: f64 = 0.05;
const SHORT_LENGTH: usize = 200;
const LEAST_SHARE_OF_SHORT: f64 = 0.15;

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

/// Reads the main content of a page. `base_url` is the page's own URL; without a valid one links become plain text.
pub fn markdown(html: &str, base_url: &str) -> Readable {
    let dom = Dom::parse(html);
    let page = Url::parse(base_url).ok();
    let metadata = metadata::read(&dom, page.as_ref());
    let base = metadata.base.as_ref().or(page.as_ref());
    let body = dom.first("body").unwrap_or(Dom::ROOT);
    let (markdown, links) = render_selection(&dom, &selection_of(&dom, body), base);
    let host = page.as_ref().and_then(Url::host_str).map(str::to_owned);
    Readable {
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
    let least = if main.length < SHORT_LENGTH {
        LEAST_SHARE_OF_SHORT
    } else {
        LEAST_SHARE
    };
    if (main.length as f64) < least * outline.length as f64 {
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
