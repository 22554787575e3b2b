//! Describes elements without text by colour, size, position and classes.

use super::describe::name_of;
use super::print::{cut, one_line};
use super::roles::{DisplayKind, Role, drawing_of, is_shape};
use super::scene::Scene;
use super::semantics::Semantics;
use super::snapshot::{Layout, Node, NodeKind};
use std::fmt::Write;
use std::sync::Arc;

/// Maximum number of classes to consider.
const MAX_CLASSES: usize = 20;
/// Maximum number of nodes to search for a sibling.
const SIBLING_SEARCH_NODES: usize = 8;

/// Adds the classes, colour, size and position of a control without text.
pub(super) fn add_appearance(
    details: &mut String,
    scene: &Scene,
    semantics: &Semantics,
    at: usize,
    role: &Role,
) {
    let node = scene.node(at);
    let is_drawing =
        is_shape(&node.tag) || role.name == "canvas" || matches!(&*node.tag, "svg" | "canvas");
    let is_nameless = || name_of(scene, semantics, at, role, false).is_empty();
    // The text inside a container says more than its appearance.
    let has_text =
        || role.kind == DisplayKind::CompositeControl && !scene.text_below(at, 1).is_empty();
    if !role.is_control() || !(is_drawing || (is_nameless() && !has_text())) {
        return;
    }
    if !is_drawing {
        add_id_and_classes(details, scene, at);
    }
    let is_field = matches!(&*node.tag, "input" | "textarea" | "select") || role.name == "textbox";
    let Some(layout) = scene.layout(at) else {
        return;
    };
    let shape = is_shape(&node.tag);
    if role.name != "canvas" && !is_field && (!is_drawing || shape) {
        add_colour(details, node, layout, shape);
    }
    if is_field {
        return;
    }
    let _ = write!(
        details,
        " {}x{}",
        layout.rect.width.round(),
        layout.rect.height.round()
    );
    add_position(details, scene, at);
}

/// Adds the position of a shape in its drawing, which is needed to click at a point of the drawing.
fn add_position(details: &mut String, scene: &Scene, at: usize) {
    let drawing = drawing_of(scene, at).and_then(|drawing| scene.nodes[drawing].rect);
    if let (Some(outer), Some(rect)) = (drawing, scene.nodes[at].rect) {
        let (x, y) = (rect.x - outer.x, rect.y - outer.y);
        let _ = write!(details, " at {},{}", x.round(), y.round());
    }
}

/// Adds the id, the first class, and the first class that the sibling does not have. They often describe an element
/// without text and its state.
fn add_id_and_classes(details: &mut String, scene: &Scene, at: usize) {
    let node = scene.node(at);
    let id = node.attribute("id").filter(|id| !id.is_empty());
    let id = id.map(|id| format!("#{}", cut(&one_line(id), 30)));
    let beside = sibling(scene, at).map_or("", |sibling| classes_of(scene.node(sibling)));
    let is_own = |class: &&str| !beside.split_whitespace().any(|other| other == *class);
    let mut classes = classes_of(node).split_whitespace().take(MAX_CLASSES);
    let first = classes.next();
    let others: Vec<&str> = classes.collect();
    let own = others.iter().copied().find(is_own);
    let second = own.or(others.first().copied());
    let class = |class| format!(".{}", cut(&one_line(class), 30));
    let marks: String = id
        .into_iter()
        .chain(first.into_iter().chain(second).map(class))
        .collect();
    if !marks.is_empty() {
        let _ = write!(details, " {marks}");
    }
}

fn classes_of(node: &Node) -> &str {
    node.attribute("class").unwrap_or_default()
}

/// Returns the next element with the same parent, or else the previous one.
fn sibling(scene: &Scene, at: usize) -> Option<usize> {
    let place = &scene.nodes[at];
    let is_sibling = |other: &usize| {
        scene.nodes[*other].parent == place.parent && scene.node(*other).kind == NodeKind::Element
    };
    let after = place.end..scene.nodes.len().min(place.end + SIBLING_SEARCH_NODES);
    let before = (at.saturating_sub(SIBLING_SEARCH_NODES)..at).rev();
    after.chain(before).find(is_sibling)
}

/// Adds the colour of a box, or the fill or stroke of a shape.
fn add_colour(details: &mut String, node: &Node, layout: &Layout, is_shape: bool) {
    let styles = &layout.styles;
    let candidates: &[(&str, &Arc<str>)] = if !is_shape {
        &[("colour", &styles.background)]
    } else if &*node.tag == "line" {
        &[("stroke", &styles.stroke)]
    } else {
        &[("fill", &styles.fill), ("stroke", &styles.stroke)]
    };
    let is_plain = |colour: &str| matches!(colour, "" | "none" | "rgba(0, 0, 0, 0)");
    let seen = candidates.iter().find(|(_, colour)| !is_plain(colour));
    if let Some((name, colour)) = seen {
        // The page's own colour name is easier to read.
        let given = node
            .attribute(name)
            .filter(|given| is_shape && !is_plain(given));
        let colour = given.unwrap_or(colour).replace(' ', "");
        let _ = write!(details, " {name}={}", cut(&one_line(&colour), 24));
    }
}
