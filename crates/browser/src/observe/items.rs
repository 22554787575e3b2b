//! The items of an observation in reading order: controls, headings, texts, and their containers.

use super::describe::{self, details_of, link_of, name_of};
use super::print::{cut, one_line};
use super::roles::{DisplayKind, Roles};
use super::scene::{Scene, Visibility};
use super::semantics::{Semantics, distance};
use super::snapshot::NodeKind;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum length of a text on one line, in bytes.
const MAX_TEXT_BYTES: usize = 300;
/// Maximum depth of nested containers; deeper ones are merged.
const MAX_DEPTH: usize = 64;

#[derive(Debug)]
pub(super) struct Item {
    /// The index of its node in the scene.
    pub(super) at: usize,
    /// The index of the item that contains it.
    pub(super) parent: Option<usize>,
    pub(super) kind: ItemKind,
    pub(super) role: String,
    pub(super) name: String,
    /// For a text: the part that no other item contains.
    pub(super) own_text: String,
    /// The details after the name: value, states, link.
    pub(super) details: String,
    /// The absolute URL, if the item is a link.
    pub(super) link: Option<Arc<str>>,
    pub(super) is_in_view: bool,
    /// Distance to the viewport in pixels.
    pub(super) distance: u64,
    /// Whether its accessibility data is known; otherwise its name is a guess.
    pub(super) is_known: bool,
    pub(super) is_focused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Text,
    Element(DisplayKind),
}

impl Item {
    pub(super) fn is_control(&self) -> bool {
        matches!(
            self.kind,
            ItemKind::Element(DisplayKind::Control | DisplayKind::CompositeControl)
        )
    }

    /// Returns whether the item is printed with a handle.
    pub(super) fn has_handle(&self) -> bool {
        self.is_control() || self.kind == ItemKind::Element(DisplayKind::Section)
    }

    pub(super) fn is_group(&self) -> bool {
        self.kind == ItemKind::Element(DisplayKind::Group)
    }

    /// Returns whether the item has no line of its own.
    pub(super) fn is_unlisted(&self) -> bool {
        self.kind == ItemKind::Element(DisplayKind::Unlisted)
    }

    /// Returns whether the item is shown only if it has content.
    pub(super) fn is_container(&self) -> bool {
        matches!(
            self.kind,
            ItemKind::Element(DisplayKind::Group | DisplayKind::Section | DisplayKind::Unlisted)
        )
    }
}

/// The state that a node passes to its descendants.
#[derive(Clone, Copy, Default)]
struct InheritedStyle {
    item: Option<usize>,
    depth: usize,
    /// Whether the text is part of an ancestor's name.
    is_covered: bool,
    /// Whether the descendants are not shown.
    is_skipped: bool,
    /// The nearest block-level box.
    block: usize,
}

/// A text under construction.
struct OpenText {
    item: usize,
    text: String,
    /// The part that no other item contains.
    own: String,
}

/// Finds the items of a scene, or only those below the node `scope`.
pub(super) fn find(
    scene: &Scene,
    semantics: &Semantics,
    roles: &Roles,
    scope: Option<usize>,
) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut texts: HashMap<usize, OpenText> = HashMap::new();
    let mut inherited: Vec<InheritedStyle> = Vec::with_capacity(scene.nodes.len());
    let range = scope.map_or(0..scene.nodes.len(), |scope| scope..scene.nodes[scope].end);
    for at in 0..scene.nodes.len() {
        let place = &scene.nodes[at];
        let above = place
            .parent
            .map_or(InheritedStyle::default(), |parent| inherited[parent]);
        let mut own = above;
        if !range.contains(&at) {
            inherited.push(InheritedStyle::default());
            continue;
        }
        let node = scene.node(at);
        match node.kind {
            NodeKind::Text if !above.is_skipped && is_readable(scene, at) => {
                let text = node.text.as_deref().unwrap_or_default();
                add_text(&mut items, &mut texts, &above, text, || {
                    text_item(scene, at, &above)
                });
            }
            NodeKind::Element => {
                if !scene.is_inline(at) {
                    own.block = at;
                }
                // Text that is already part of another item's name is not shown again.
                own.is_covered |=
                    roles.labels.contains(&at) || is_name_of_parent(&items, &above, &node.tag);
                let role = roles.by_node[at].as_ref();
                let role = role
                    .filter(|role| !above.is_skipped && (!above.is_covered || role.is_control()));
                if let Some(role) = role {
                    let name = name_of(scene, semantics, at, role, scope == Some(at));
                    own.is_covered |=
                        matches!(role.kind, DisplayKind::Control | DisplayKind::Label);
                    own.is_skipped |= &*node.tag == "select" && scope != Some(at);
                    if scope == Some(at) {
                        own.is_covered = false;
                    }
                    // Beyond the maximum depth, content is placed next to its container instead of inside.
                    if above.depth < MAX_DEPTH {
                        own.item = Some(items.len());
                        own.depth = above.depth + 1;
                    }
                    items.push(Item {
                        at,
                        parent: above.item,
                        kind: ItemKind::Element(role.kind),
                        role: role.name.clone(),
                        name,
                        own_text: String::new(),
                        details: details_of(scene, semantics, at, role, scope == Some(at)),
                        link: link_of(scene, at),
                        is_in_view: place.visibility == Visibility::InView,
                        distance: distance(scene, at),
                        is_known: semantics.contains_key(&at),
                        is_focused: semantics
                            .get(&at)
                            .is_some_and(|ax_node| ax_node.is("focused")),
                    });
                    if &*node.tag == "select" && scope == Some(at) {
                        let list = items.len() - 1;
                        items.extend(option_items(scene, at, list));
                    }
                } else if &*node.tag == "br" {
                    add_space(&mut texts, above.block);
                }
            }
            _ => {}
        }
        inherited.push(own);
    }
    finish_texts(&mut items, texts);
    prune(items)
}

/// Returns whether an element's text is the name of the item around it.
fn is_name_of_parent(items: &[Item], above: &InheritedStyle, tag: &str) -> bool {
    let parent = above.item.map(|item| &items[item]);
    matches!(tag, "legend" | "caption") && parent.is_some_and(|parent| !parent.name.is_empty())
}

/// Returns the options of a native list as items. They are shown if the list is the scope.
fn option_items(scene: &Scene, list: usize, parent: usize) -> Vec<Item> {
    let options = describe::options_of(scene, list).into_iter();
    let item = |(at, name, details)| Item {
        at,
        parent: Some(parent),
        kind: ItemKind::Element(DisplayKind::Label),
        role: "option".to_owned(),
        name,
        own_text: String::new(),
        details,
        link: None,
        is_in_view: true,
        distance: 0,
        is_known: true,
        is_focused: false,
    };
    options.map(item).collect()
}

fn is_readable(scene: &Scene, at: usize) -> bool {
    let place = &scene.nodes[at];
    matches!(place.visibility, Visibility::InView | Visibility::Reachable) && !place.is_aria_hidden
}

fn text_item(scene: &Scene, at: usize, above: &InheritedStyle) -> Item {
    Item {
        at,
        parent: above.item,
        kind: ItemKind::Text,
        role: "text".to_owned(),
        name: String::new(),
        own_text: String::new(),
        details: String::new(),
        link: None,
        is_in_view: scene.nodes[at].visibility == Visibility::InView,
        distance: distance(scene, at),
        is_known: true,
        is_focused: false,
    }
}

fn add_text(
    items: &mut Vec<Item>,
    texts: &mut HashMap<usize, OpenText>,
    above: &InheritedStyle,
    text: &str,
    item: impl FnOnce() -> Item,
) {
    if text.trim().is_empty() {
        add_space(texts, above.block);
        return;
    }
    let open = texts.entry(above.block).or_insert_with(|| {
        items.push(item());
        OpenText {
            item: items.len() - 1,
            text: String::new(),
            own: String::new(),
        }
    });
    if open.text.len() < 2 * MAX_TEXT_BYTES {
        open.text.push_str(text);
    }
    if open.own.len() < 2 * MAX_TEXT_BYTES {
        open.own.push_str(if above.is_covered { " " } else { text });
    }
}

fn add_space(texts: &mut HashMap<usize, OpenText>, block: usize) {
    if let Some(open) = texts.get_mut(&block) {
        open.text.push(' ');
        open.own.push(' ');
    }
}

fn finish_texts(items: &mut [Item], texts: HashMap<usize, OpenText>) {
    for text in texts.into_values() {
        let own = one_line(&text.own);
        if !own.is_empty() {
            items[text.item].name = cut(&one_line(&text.text), MAX_TEXT_BYTES);
            items[text.item].own_text = cut(&own, MAX_TEXT_BYTES);
        }
    }
}

/// Drops texts that are part of other items, and empty containers.
fn prune(items: Vec<Item>) -> Vec<Item> {
    let mut is_used: Vec<bool> = items
        .iter()
        .map(|item| match item.kind {
            // Up to three characters without letters or digits are only a separator.
            ItemKind::Text => {
                let text = &item.own_text;
                text.chars().any(char::is_alphanumeric) || text.chars().count() > 3
            }
            ItemKind::Element(_) => !item.is_container() || item.role == "frame",
        })
        .collect();
    for index in (0..items.len()).rev() {
        if is_used[index]
            && let Some(parent) = items[index].parent
        {
            is_used[parent] = true;
        }
    }
    let mut new_index = vec![0; items.len()];
    let mut used = Vec::new();
    for (index, mut item) in items.into_iter().enumerate() {
        if is_used[index] {
            new_index[index] = used.len();
            item.parent = item.parent.map(|parent| new_index[parent]);
            used.push(item);
        }
    }
    used
}
