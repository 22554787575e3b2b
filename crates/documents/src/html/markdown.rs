//! Renders a tree as Markdown: headings, paragraphs, lists, quotes, tables, code, links with absolute URLs, and
//! descriptions of images. Drops emphasis and the images themselves.

use super::dom::{Dom, MAX_DEPTH, NodeId};
use super::table;
use super::writer::Writer;
use url::Url;

/// Elements that are never shown.
pub(super) const HIDDEN_ELEMENTS: [&str; 19] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object", "embed", "canvas",
    "head", "title", "input", "select", "textarea", "button", "datalist", "audio", "video", "map",
];

/// Block-level elements.
pub(super) const BLOCK_ELEMENTS: [&str; 38] = [
    "p",
    "div",
    "section",
    "article",
    "main",
    "header",
    "footer",
    "nav",
    "aside",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "table",
    "tr",
    "caption",
    "thead",
    "tbody",
    "tfoot",
    "blockquote",
    "pre",
    "hr",
    "form",
    "fieldset",
    "figure",
    "figcaption",
    "details",
    "summary",
    "body",
    "html",
    "address",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
];

pub(super) struct Options<'a> {
    /// The base URL of relative links; without it links become plain text.
    pub base: Option<&'a Url>,
    /// Nodes to skip, with their descendants.
    pub dropped: &'a dyn Fn(NodeId) -> bool,
}

/// A link in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub text: String,
    /// An absolute `http` or `https` URL.
    pub url: String,
}

/// Renders the nodes in order, and returns the Markdown with its links.
pub(super) fn render(dom: &Dom, nodes: &[NodeId], options: &Options<'_>) -> (String, Vec<Link>) {
    let mut renderer = Renderer {
        dom,
        options,
        writer: Writer::default(),
        depth: 0,
    };
    for node in nodes {
        renderer.node(*node);
        renderer.writer.end_block();
    }
    renderer.writer.finish()
}

pub(super) struct Renderer<'a> {
    pub(super) dom: &'a Dom,
    options: &'a Options<'a>,
    pub(super) writer: Writer,
    depth: usize,
}

impl Renderer<'_> {
    pub(super) fn children(&mut self, node: NodeId) {
        for child in self.dom.children(node) {
            self.node(*child);
        }
    }

    pub(super) fn is_dropped(&self, node: NodeId) -> bool {
        HIDDEN_ELEMENTS.contains(&self.dom.name(node)) || (self.options.dropped)(node)
    }

    fn node(&mut self, node: NodeId) {
        if let Some(text) = self.dom.text(node) {
            self.writer.text(text);
            return;
        }
        // Where the parser moved misnested tags, the tree can be somewhat deeper than the limit.
        if self.is_dropped(node) || self.depth > 2 * MAX_DEPTH {
            return;
        }
        self.depth += 1;
        self.element(node);
        self.depth -= 1;
    }

    fn element(&mut self, node: NodeId) {
        match self.dom.name(node) {
            "br" => self.writer.line_break(),
            "hr" => self.writer.end_block(),
            "img" => self.image(node),
            "a" => self.link(node),
            "pre" => self.code_block(node),
            "code" | "kbd" | "samp" => self.code(node),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(node),
            "ul" | "ol" | "menu" => self.list(node),
            "blockquote" => {
                self.writer.start_quote();
                self.children(node);
                self.writer.end_container();
            }
            "table" if table::is_data(self, node) => table::render(self, node),
            "td" | "th" | "option" => {
                self.writer.text(" ");
                self.children(node);
                self.writer.text(" ");
            }
            "li" => {
                // This is an item outside a list.
                self.writer.start_item("- ");
                self.children(node);
                self.writer.end_container();
            }
            name if BLOCK_ELEMENTS.contains(&name) => {
                self.writer.end_block();
                self.children(node);
                self.writer.end_block();
            }
            _ => self.children(node),
        }
    }

    fn heading(&mut self, node: NodeId) {
        let level = usize::from(self.dom.name(node).as_bytes()[1] - b'0');
        self.writer.start_heading(level);
        self.children(node);
        self.writer.end_block();
    }

    fn list(&mut self, node: NodeId) {
        let is_numbered = self.dom.name(node) == "ol";
        let start = self.dom.attribute(node, "start");
        let mut number: u32 = start.and_then(|start| start.parse().ok()).unwrap_or(1);
        self.writer.end_block();
        for child in self.dom.children(node) {
            if self.dom.name(*child) != "li" {
                self.node(*child);
                continue;
            }
            if self.is_dropped(*child) {
                continue;
            }
            if is_numbered {
                self.writer.start_item(&format!("{number}. "));
                number = number.saturating_add(1);
            } else {
                self.writer.start_item("- ");
            }
            self.children(*child);
            self.writer.end_container();
        }
    }

    fn link(&mut self, node: NodeId) {
        let target = self.dom.attribute(node, "href");
        let target = target.and_then(|href| absolute(self.options.base, href));
        let Some(url) = target else {
            return self.children(node);
        };
        self.writer.start_link(url);
        self.children(node);
        self.writer.end_link();
    }

    fn image(&mut self, node: NodeId) {
        let alternative = self.dom.attribute(node, "alt").unwrap_or_default();
        let alternative = alternative.trim();
        // A file name or a single word is not a description.
        if alternative.contains(char::is_whitespace) {
            self.writer.text("[image: ");
            self.writer.text(alternative);
            self.writer.text("]");
        }
    }

    fn code(&mut self, node: NodeId) {
        let text = self.dom.line(node);
        if !text.is_empty() {
            self.writer.code(&text);
        }
    }

    fn code_block(&mut self, node: NodeId) {
        let is_code = |node: &NodeId| self.dom.name(*node) == "code";
        let inner = self.dom.children(node).iter().find(|node| is_code(node));
        let classes = [Some(&node), inner]
            .into_iter()
            .flatten()
            .filter_map(|node| self.dom.attribute(*node, "class"))
            .flat_map(str::split_whitespace);
        let language = classes
            .filter_map(|class| {
                class
                    .strip_prefix("language-")
                    .or_else(|| class.strip_prefix("lang-"))
            })
            .next()
            .unwrap_or_default()
            .to_owned();
        let mut text = String::new();
        for node in self.dom.walk(node, |node| self.is_dropped(node)) {
            match self.dom.text(node) {
                Some(part) => text.push_str(part),
                None if self.dom.name(node) == "br" => text.push('\n'),
                None => {}
            }
        }
        self.writer.code_block(&language, &text);
    }
}

/// Returns the absolute URL of a link; `None` if the link does not lead to another web page, or if its URL contains a
/// user name or password.
pub(super) fn absolute(base: Option<&Url>, href: &str) -> Option<String> {
    let href = href.trim();
    // Skips links to a fragment of the same page.
    if href.is_empty() || href.starts_with('#') || href.len() > 2000 {
        return None;
    }
    let url = base?.join(href).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https");
    (is_web && url.username().is_empty() && url.password().is_none()).then(|| url.into())
}
