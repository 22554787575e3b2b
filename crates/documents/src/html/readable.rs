//! Selects the main content of a page: the part with the running text, without menus, banners, comments and lists of
//! other pages.
//!
//! Each paragraph adds to the score of the containers around it, depending on its length and number of commas. Class
//! names raise or lower the score of a container; a large share of link text lowers it. The best container is
//! selected, with siblings that look like it. Inside it, parts that consist mostly of links or have a telling class
//! name are dropped. If too little is left, the selection is repeated with fewer rules.

use super::dom::{Dom, NodeId};
use super::markdown::HIDDEN_ELEMENTS;
use super::names::{self, NameKind};

/// The selected content of a page.
pub(super) struct Selection {
    /// The nodes to render, in document order.
    pub nodes: Vec<NodeId>,
    /// The number of characters of text.
    pub length: usize,
    dropped: Vec<bool>,
}

impl Selection {
    pub(super) fn is_dropped(&self, node: NodeId) -> bool {
        self.dropped[node]
    }
}

/// Number of characters below which the selection is repeated with fewer rules.
const ENOUGH_TEXT: usize = 500;

/// Number of ancestors whose scores a paragraph raises.
const SCORED_ANCESTORS: usize = 5;

/// Minimum length of a paragraph of running text, in characters.
const PROSE_LENGTH: usize = 80;

/// A set of active rules.
#[derive(Clone, Copy)]
struct Rules {
    names: bool,
    links: bool,
}

const RULE_SETS: [Rules; 3] = [
    Rules {
        names: true,
        links: true,
    },
    Rules {
        names: false,
        links: true,
    },
    Rules {
        names: false,
        links: false,
    },
];

/// Selects the main content below `body`.
pub(super) fn select(dom: &Dom, body: NodeId) -> Selection {
    let mut best = PageAnalysis::measure(dom, body, RULE_SETS[0]).select();
    for rules in &RULE_SETS[1..] {
        if best.length >= ENOUGH_TEXT {
            break;
        }
        let other = PageAnalysis::measure(dom, body, *rules).select();
        if other.length > 2 * best.length {
            best = other;
        }
    }
    best
}

/// Selects the whole page without navigation and other boilerplate, for pages that are lists of links.
pub(super) fn outline(dom: &Dom, body: NodeId) -> Selection {
    PageAnalysis::measure(dom, body, RULE_SETS[2]).finish(vec![body])
}

/// Selects everything visible on the page.
pub(super) fn whole(dom: &Dom, body: NodeId) -> Selection {
    Selection {
        nodes: vec![body],
        length: 0,
        dropped: (0..dom.len()).map(|node| is_hidden(dom, node)).collect(),
    }
}

/// The statistics of each node under a set of rules.
struct PageAnalysis<'a> {
    dom: &'a Dom,
    body: NodeId,
    rules: Rules,
    dropped: Vec<bool>,
    /// The nodes that are not dropped, parents before children.
    order: Vec<NodeId>,
    stats: Vec<NodeStats>,
}

#[derive(Clone, Copy, Default)]
struct NodeStats {
    /// Number of characters.
    text: usize,
    /// Number of characters inside links.
    links: usize,
    commas: usize,
    /// Number of characters in long paragraphs with few links.
    prose: usize,
    paragraphs: usize,
    inputs: usize,
    images: usize,
    items: usize,
    score: f64,
}

impl NodeStats {
    fn link_share(&self) -> f64 {
        if self.text == 0 {
            return 0.0;
        }
        self.links as f64 / self.text as f64
    }
}

impl<'a> PageAnalysis<'a> {
    fn measure(dom: &'a Dom, body: NodeId, rules: Rules) -> Self {
        let mut dropped = vec![false; dom.len()];
        let all = dom.walk(body, |_| false);
        let mut is_in_article = vec![false; dom.len()];
        for node in &all {
            let parent = dom.parent(*node).unwrap_or(Dom::ROOT);
            is_in_article[*node] =
                is_in_article[parent] || matches!(dom.name(*node), "article" | "main");
            dropped[*node] = *node != body
                && (dropped[parent]
                    || is_hidden(dom, *node)
                    || is_boilerplate(dom, *node, is_in_article[parent], rules));
        }
        let order: Vec<_> = all.into_iter().filter(|node| !dropped[*node]).collect();
        let mut page = Self {
            dom,
            body,
            rules,
            dropped,
            order,
            stats: vec![NodeStats::default(); dom.len()],
        };
        page.count();
        page.score();
        page
    }

    /// Counts text, links and commas, children before parents.
    fn count(&mut self) {
        for node in self.order.iter().rev() {
            let name = self.dom.name(*node);
            let mut stats = self.stats[*node];
            if let Some(text) = self.dom.text(*node) {
                stats.text = visible_length(text);
                stats.commas = text.chars().filter(|c| is_comma(*c)).count();
            }
            match name {
                "a" if self
                    .dom
                    .attribute(*node, "href")
                    .is_some_and(|href| !href.starts_with('#')) =>
                {
                    stats.links = stats.text;
                }
                "p" | "pre" | "blockquote" => {
                    stats.paragraphs += 1;
                    if stats.text >= PROSE_LENGTH && stats.link_share() < 0.3 {
                        stats.prose = stats.text;
                    }
                }
                "input" | "button" | "select" | "textarea" => stats.inputs += 1,
                "img" | "picture" => stats.images += 1,
                "li" => stats.items += 1,
                _ => {}
            }
            self.stats[*node] = stats;
            if *node != self.body
                && let Some(parent) = self.dom.parent(*node)
            {
                let above = &mut self.stats[parent];
                above.text += stats.text;
                above.links += stats.links;
                above.commas += stats.commas;
                above.prose += stats.prose;
                above.paragraphs += stats.paragraphs;
                above.inputs += stats.inputs;
                above.images += stats.images;
                above.items += stats.items;
            }
        }
    }

    /// Adds the score of every paragraph to its ancestors.
    fn score(&mut self) {
        for node in self.order.clone() {
            let stats = self.stats[node];
            if !self.is_paragraph(node) || stats.text < 25 {
                continue;
            }
            let length = (stats.text as f64 / 100.0).min(3.0);
            let points = 1.0 + stats.commas as f64 + length;
            let points = points * (1.0 - stats.link_share());
            let mut above = node;
            for level in 0..SCORED_ANCESTORS {
                let Some(parent) = self.dom.parent(above) else {
                    break;
                };
                if above == self.body || parent == Dom::ROOT {
                    break;
                }
                above = parent;
                let share = match level {
                    0 => 1.0,
                    1 => 0.5,
                    level => 1.0 / (level as f64 * 3.0),
                };
                self.stats[above].score += points * share;
            }
        }
        for node in self.order.clone() {
            let stats = &mut self.stats[node];
            if stats.score > 0.0 {
                stats.score += tag_points(self.dom.name(node));
                if self.rules.names {
                    stats.score += names::points(self.dom, node);
                }
                stats.score *= 1.0 - stats.link_share();
            }
        }
    }

    /// Returns whether a node is running text: a paragraph, or a container with text that is not in a child element.
    fn is_paragraph(&self, node: NodeId) -> bool {
        match self.dom.name(node) {
            "p" | "pre" | "td" | "blockquote" | "section" | "h2" | "h3" | "h4" | "h5" | "h6"
            | "dd" => !matches!(self.dom.name(node), "section") || self.has_own_text(node),
            "div" | "li" | "article" => self.has_own_text(node),
            _ => false,
        }
    }

    fn has_own_text(&self, node: NodeId) -> bool {
        let own = self.dom.children(node).iter();
        let own = own.filter_map(|child| self.dom.text(*child));
        own.map(visible_length).sum::<usize>() >= 25
    }

    /// Selects the best container with its siblings.
    fn select(mut self) -> Selection {
        let candidates = self.order.iter().copied();
        let candidates = candidates.filter(|node| {
            !matches!(
                self.dom.name(*node),
                "p" | "pre" | "blockquote" | "li" | "ul" | "ol" | "tr" | ""
            )
        });
        let best = candidates.fold(None, |best: Option<NodeId>, node| match best {
            Some(best) if self.stats[best].score >= self.stats[node].score => Some(best),
            _ if self.stats[node].score > 0.0 => Some(node),
            _ => best,
        });
        let Some(best) = best else {
            let body = self.body;
            return self.finish(vec![body]);
        };
        let top = self.widen(best);
        let nodes = self.with_siblings(top, self.stats[best].score);
        if self.rules.links {
            for node in nodes.clone() {
                self.clean(node);
            }
        }
        self.finish(nodes)
    }

    /// Climbs from the best container while its parent adds running text rather than links.
    fn widen(&self, best: NodeId) -> NodeId {
        let mut top = best;
        while let Some(parent) = self.dom.parent(top) {
            if top == self.body || parent == Dom::ROOT || self.dropped[parent] {
                break;
            }
            let (inner, outer) = (self.stats[top], self.stats[parent]);
            let is_only = outer.text <= inner.text + inner.text / 50;
            let added = outer.text - inner.text;
            let added_links = outer.links - inner.links;
            let is_text = if matches!(self.dom.name(parent), "article" | "main") {
                added_links * 3 < added
            } else {
                let is_good = outer.score > 0.75 * self.stats[best].score;
                let is_prose = (outer.prose - inner.prose) * 10 > added * 7;
                added_links * 5 < added && (is_good || is_prose)
            };
            if !is_only && !is_text {
                break;
            }
            top = parent;
        }
        top
    }

    /// Returns the container with the siblings that belong to the same text.
    fn with_siblings(&self, top: NodeId, best: f64) -> Vec<NodeId> {
        let Some(parent) = self.dom.parent(top).filter(|_| top != self.body) else {
            return vec![top];
        };
        let threshold = (0.2 * best).max(10.0);
        let siblings = self.dom.children(parent).iter().copied();
        let chosen = siblings.filter(|node| {
            if *node == top {
                return true;
            }
            if self.dropped[*node] {
                return false;
            }
            let stats = self.stats[*node];
            let is_text = self.dom.name(*node) == "p"
                && (stats.text > 80 && stats.link_share() < 0.25
                    || stats.text > 0 && stats.links == 0 && stats.commas > 0);
            stats.score >= threshold || is_text
        });
        chosen.collect()
    }

    /// Drops nodes inside the content that are not part of it.
    fn clean(&mut self, from: NodeId) {
        for node in self.dom.walk(from, |node| self.dropped[node]) {
            if node != from && self.is_clutter(node) {
                self.drop_below(node);
            }
        }
    }

    fn is_clutter(&self, node: NodeId) -> bool {
        let name = self.dom.name(node);
        let stats = self.stats[node];
        match name {
            "ul" | "ol" | "div" | "section" | "table" | "dl" | "form" | "header" | "nav" => {}
            _ => return false,
        }
        let is_list = matches!(name, "ul" | "ol" | "dl");
        let is_nested = self
            .dom
            .parent(node)
            .is_some_and(|parent| self.dom.name(parent) == "li");
        // A nested list is dropped only together with the outer one.
        if stats.text == 0 || is_list && is_nested {
            return false;
        }
        let points = if self.rules.names {
            names::points(self.dom, node)
        } else {
            0.0
        };
        if points < 0.0 {
            return true;
        }
        if stats.commas >= 10 {
            return false;
        }
        let share = stats.link_share();
        stats.inputs > stats.paragraphs / 3 && !is_list
            || points <= 0.0
                && share > 0.2 + points / 100.0
                && !is_list
                && stats.text < 1000
                && stats.paragraphs == 0
            || share > 0.5 && points <= 0.0
            || points > 0.0 && share > 0.75
    }

    fn drop_below(&mut self, node: NodeId) {
        for node in self.dom.walk(node, |_| false) {
            self.dropped[node] = true;
        }
    }

    fn finish(self, nodes: Vec<NodeId>) -> Selection {
        let inside = nodes
            .iter()
            .flat_map(|node| self.dom.walk(*node, |node| self.dropped[node]));
        let texts = inside.filter_map(|node| self.dom.text(node));
        let length = texts.map(visible_length).sum();
        Selection {
            nodes,
            length,
            dropped: self.dropped,
        }
    }
}

/// Returns whether a reader cannot see a node.
fn is_hidden(dom: &Dom, node: NodeId) -> bool {
    if HIDDEN_ELEMENTS.contains(&dom.name(node))
        && !matches!(dom.name(node), "input" | "button" | "select" | "textarea")
    {
        return true;
    }
    if dom.attribute(node, "hidden").is_some() || dom.name(node) == "dialog" {
        return true;
    }
    let style = dom.attribute(node, "style").unwrap_or_default();
    let style: String = style.chars().filter(|c| !c.is_whitespace()).collect();
    let style = style.to_ascii_lowercase();
    [
        "display:none",
        "visibility:hidden",
        "font-size:0;",
        "opacity:0;",
    ]
    .iter()
    .any(|sign| style.contains(sign))
        || style.ends_with("opacity:0")
        || style.ends_with("font-size:0")
}

/// Returns whether a node is boilerplate by its element, role or class name.
fn is_boilerplate(dom: &Dom, node: NodeId, is_in_article: bool, rules: Rules) -> bool {
    let name = dom.name(node);
    if matches!(name, "nav" | "aside" | "menu") || name == "footer" {
        return true;
    }
    if name == "header" && !is_in_article && !dom.contains(node, "h1") {
        return true;
    }
    let role = dom.attribute(node, "role").unwrap_or_default();
    if names::ROLES.contains(&role) {
        return true;
    }
    if dom.attribute(node, "aria-hidden") == Some("true") && name != "img" && name != "span" {
        return true;
    }
    rules.names && names::kind(dom, node) == NameKind::Boilerplate
}

fn tag_points(name: &str) -> f64 {
    match name {
        "article" | "main" => 10.0,
        "div" => 5.0,
        "pre" | "td" | "blockquote" => 3.0,
        "ol" | "ul" | "dl" | "dd" | "dt" | "li" | "form" | "address" => -3.0,
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "th" => -5.0,
        _ => 0.0,
    }
}

fn is_comma(character: char) -> bool {
    matches!(character, ',' | '،' | '、' | '，' | '﹐')
}

/// Returns the number of characters; consecutive spaces count as one.
fn visible_length(text: &str) -> usize {
    let mut length = 0;
    let mut was_space = true;
    for character in text.chars() {
        let is_space = character.is_whitespace();
        if !(is_space && was_space) {
            length += 1;
        }
        was_space = is_space;
    }
    length - usize::from(was_space && length > 0)
}
