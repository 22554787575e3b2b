//! Classifies parts of a page by the names of their classes and ids.

use super::dom::{Dom, NodeId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    Boilerplate,
    Unclear,
}

/// ARIA roles of parts that are not content.
pub(super) const ROLES: [&str; 10] = [
    "navigation",
    "banner",
    "complementary",
    "contentinfo",
    "search",
    "dialog",
    "alertdialog",
    "menu",
    "menubar",
    "alert",
];

/// Words in class names of boilerplate.
const BOILERPLATE: [&str; 44] = [
    "-ad-",
    "ad-break",
    "agegate",
    "banner",
    "breadcrumb",
    "combx",
    "comment",
    "community",
    "consent",
    "cookie",
    "cover-wrap",
    "disqus",
    "extra",
    "footer",
    "gdpr",
    "legends",
    "masthead",
    "menu",
    "modal",
    "nav",
    "newsletter",
    "pager",
    "pagination",
    "popup",
    "promo",
    "recommend",
    "related",
    "remark",
    "replies",
    "rss",
    "share",
    "shoutbox",
    "sidebar",
    "skip-link",
    "skyscraper",
    "social",
    "sponsor",
    "subscribe",
    "supplemental",
    "toolbar",
    "widget",
    "yom-remote",
    "outbrain",
    "taboola",
];

/// Words that override a match in [`BOILERPLATE`].
const CONTENT: [&str; 10] = [
    "and", "article", "body", "column", "content", "main", "shadow", "story", "entry", "post",
];

/// Words that raise the score of a container, and words that lower it.
const GOOD: [&str; 14] = [
    "article", "body", "content", "entry", "hentry", "h-entry", "main", "page", "post", "text",
    "blog", "story", "prose", "markdown",
];
const BAD: [&str; 26] = [
    "-ad-",
    "hidden",
    "banner",
    "combx",
    "comment",
    "com-",
    "contact",
    "footer",
    "gdpr",
    "masthead",
    "media",
    "meta",
    "outbrain",
    "promo",
    "related",
    "scroll",
    "share",
    "shoutbox",
    "sidebar",
    "skyscraper",
    "sponsor",
    "shopping",
    "tags",
    "widget",
    "byline",
    "toc",
];

fn names(dom: &Dom, node: NodeId) -> String {
    let mut names = String::new();
    for attribute in ["class", "id"] {
        names.push_str(dom.attribute(node, attribute).unwrap_or_default());
        names.push(' ');
    }
    names.make_ascii_lowercase();
    names
}

pub(super) fn kind(dom: &Dom, node: NodeId) -> NameKind {
    if matches!(
        dom.name(node),
        "" | "body" | "html" | "a" | "article" | "main" | "table" | "code" | "pre"
    ) {
        return NameKind::Unclear;
    }
    let names = names(dom, node);
    let contains = |words: &[&str]| words.iter().any(|word| names.contains(word));
    if contains(&BOILERPLATE) && !contains(&CONTENT) {
        NameKind::Boilerplate
    } else {
        NameKind::Unclear
    }
}

/// Returns the points that a container's class names add to its score.
pub(super) fn points(dom: &Dom, node: NodeId) -> f64 {
    let mut points = 0.0;
    for attribute in ["class", "id"] {
        let names = dom.attribute(node, attribute).unwrap_or_default();
        if names.is_empty() {
            continue;
        }
        let names = names.to_ascii_lowercase();
        if BAD.iter().any(|word| names.contains(word)) {
            points -= 25.0;
        }
        if GOOD.iter().any(|word| names.contains(word)) {
            points += 25.0;
        }
    }
    points
}
