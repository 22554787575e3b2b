//! Classifies elements by their accessibility data, tag and event listeners.

use super::describe::MAX_NAME_BYTES;
use super::scene::{Scene, Visibility};
use super::semantics::{AxNode, Semantics};
use super::snapshot::NodeKind;
use std::collections::HashSet;

/// How an observation shows an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisplayKind {
    /// A control; it has a handle, and its name contains its text.
    Control,
    /// A control that contains other items.
    CompositeControl,
    /// A line without a handle; its name contains its text. Headings and images, for example.
    Label,
    /// A group of items that may share one line: a table row, a list item.
    Group,
    /// A container with its own line.
    Section,
    /// A container without its own line. It is named only where some of its content is left out.
    Unlisted,
}

/// The role of an element in an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) kind: DisplayKind,
    pub(super) name: String,
}

/// The roles of all nodes of a scene, by index.
#[derive(Debug)]
pub(super) struct Roles {
    pub(super) by_node: Vec<Option<Role>>,
    /// Labels whose text is already shown as the name of their controls.
    pub(super) labels: HashSet<usize>,
}

/// Determines the role of each node of a scene.
pub(super) fn assign(scene: &Scene, semantics: &Semantics) -> Roles {
    let labels = labels_of_controls(scene);
    let drawings = interactive_drawings(scene);
    let count = scene.nodes.len();
    let mut roles: Vec<Option<Role>> = Vec::with_capacity(count);
    for at in 0..count {
        roles.push(semantic_role(scene, semantics, at));
    }
    // Whether an element with only a listener is a control depends on its content, so the nodes are visited in reverse.
    let mut controls_below = vec![0usize; count];
    for at in (0..count).rev() {
        if roles[at].is_none() && is_scroller(scene, at) {
            roles[at] = Role::new(DisplayKind::Section, "area");
        } else if roles[at].as_ref().is_none_or(Role::is_vague)
            && !labels.contains(&at)
            && let Some(kind) =
                interactive_kind(scene, semantics.get(&at), at, controls_below[at], &drawings)
        {
            roles[at] = Some(Role {
                kind,
                name: interactive_name(scene, at),
            });
        }
        let own = roles[at].as_ref().is_some_and(|role| role.is_control());
        if let Some(parent) = scene.nodes[at].parent {
            controls_below[parent] += controls_below[at] + usize::from(own);
        }
    }
    Roles {
        by_node: roles,
        labels,
    }
}

impl Role {
    fn new(kind: DisplayKind, name: &str) -> Option<Self> {
        Some(Self {
            kind,
            name: name.to_owned(),
        })
    }

    /// Returns whether an event listener says more about the element than this role.
    fn is_vague(&self) -> bool {
        matches!(self.kind, DisplayKind::Group | DisplayKind::Unlisted)
    }

    pub(super) fn is_control(&self) -> bool {
        matches!(
            self.kind,
            DisplayKind::Control | DisplayKind::CompositeControl
        )
    }
}

/// Returns the role of an element according to its accessibility data or tag.
fn semantic_role(scene: &Scene, semantics: &Semantics, at: usize) -> Option<Role> {
    let node = scene.node(at);
    if node.kind != NodeKind::Element || scene.nodes[at].visibility == Visibility::Hidden {
        return None;
    }
    let ax_node = semantics.get(&at);
    if ax_node.is_some_and(|ax_node| ax_node.is_inert) {
        return None;
    }
    if is_hidden_link(scene, at) {
        return None;
    }
    if let Some(role) = role_of_tag_first(scene, at) {
        return Some(role);
    }
    let known = ax_node.filter(|ax_node| !ax_node.is_ignored);
    let role = known.and_then(|ax_node| role_of_ax_node(ax_node, node.is_clickable));
    role.or_else(|| role_of_tag(scene, at, ax_node))
}

/// Returns whether an element is a link that is hidden from assistive technology. Such a link duplicates another one;
/// the picture of a product, for example, duplicates the link of its name.
fn is_hidden_link(scene: &Scene, at: usize) -> bool {
    let node = scene.node(at);
    &*node.tag == "a" && node.attribute("href").is_some() && scene.nodes[at].is_aria_hidden
}

/// Returns the role of an element whose tag says more than its accessibility data.
fn role_of_tag_first(scene: &Scene, at: usize) -> Option<Role> {
    let node = scene.node(at);
    match &*node.tag {
        "input" => match node.attribute("type").unwrap_or_default() {
            "file" => Role::new(DisplayKind::Control, "file"),
            kind @ ("date" | "time" | "month" | "week" | "datetime-local" | "color") => {
                Role::new(DisplayKind::Control, kind)
            }
            "hidden" => None,
            _ => None,
        },
        "iframe" | "frame" => Role::new(DisplayKind::Section, "frame"),
        "canvas" if !lets_pointer_through(scene, at) => Role::new(DisplayKind::Control, "canvas"),
        "video" | "audio" => Role::new(DisplayKind::Control, &node.tag),
        _ => match node.attribute("contenteditable") {
            Some("" | "true" | "plaintext-only") => Role::new(DisplayKind::Control, "textbox"),
            _ => None,
        },
    }
}

fn role_of_ax_node(ax_node: &AxNode, is_clickable: bool) -> Option<Role> {
    let name = ax_node.role.as_str();
    let kind = match name {
        "link" | "button" | "textbox" | "searchbox" | "combobox" | "checkbox" | "radio"
        | "switch" | "slider" | "spinbutton" | "tab" | "menuitem" | "menuitemcheckbox"
        | "menuitemradio" | "option" | "treeitem" | "scrollbar" => DisplayKind::Control,
        "listbox" => DisplayKind::CompositeControl,
        "DisclosureTriangle" | "PopUpButton" | "ToggleButton" | "DisclosureTriangleGrouped" => {
            return Role::new(DisplayKind::Control, "button");
        }
        "heading" => DisplayKind::Label,
        "image" | "img" | "graphics-document" if !is_clickable => {
            return if ax_node.name.is_empty() {
                None
            } else {
                Role::new(DisplayKind::Label, "image")
            };
        }
        "progressbar" | "meter" | "tooltip" | "ProgressIndicator" => DisplayKind::Label,
        "row" | "listitem" | "article" if !is_clickable => DisplayKind::Group,
        "dialog" | "alertdialog" | "alert" | "navigation" | "search" | "table" | "grid"
        | "treegrid" | "tablist" | "menu" | "menubar" | "tree" | "toolbar" => DisplayKind::Section,
        "status" | "log" if ax_node.name.is_empty() => DisplayKind::Unlisted,
        "form" | "region" | "group" | "radiogroup" | "complementary" | "status"
            if !ax_node.name.is_empty() =>
        {
            DisplayKind::Section
        }
        "list" | "main" | "feed" | "form" | "region" | "group" => DisplayKind::Unlisted,
        _ => return None,
    };
    Role::new(kind, name)
}

/// Returns the role of an element without accessibility data.
fn role_of_tag(scene: &Scene, at: usize, ax_node: Option<&AxNode>) -> Option<Role> {
    let node = scene.node(at);
    let is_unknown = ax_node.is_none();
    match &*node.tag {
        "a" if node.attribute("href").is_some() => Role::new(DisplayKind::Control, "link"),
        "button" | "summary" => Role::new(DisplayKind::Control, "button"),
        "select" => Role::new(DisplayKind::Control, "combobox"),
        "textarea" => Role::new(DisplayKind::Control, "textbox"),
        "input" => Role::new(
            DisplayKind::Control,
            match node.attribute("type").unwrap_or("text") {
                "hidden" => return None,
                "submit" | "button" | "reset" | "image" => "button",
                kind @ ("checkbox" | "radio") => kind,
                "range" => "slider",
                "number" => "spinbutton",
                _ => "textbox",
            },
        ),
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if is_unknown => {
            Role::new(DisplayKind::Label, "heading")
        }
        "nav" if is_unknown => Role::new(DisplayKind::Section, "navigation"),
        "tr" => Role::new(DisplayKind::Group, "row"),
        "table" if is_unknown => Role::new(DisplayKind::Section, "table"),
        "li" => Role::new(DisplayKind::Group, "listitem"),
        "ul" | "ol" | "main" => Role::new(DisplayKind::Unlisted, "list"),
        "article" => Role::new(DisplayKind::Group, "article"),
        "img"
            if is_unknown
                && node.attribute("alt").is_some_and(|alt| !alt.is_empty())
                && !node.is_clickable =>
        {
            Role::new(DisplayKind::Label, "image")
        }
        // Mouse-only buttons, such as the arrows of a number field, are hidden from assistive technology.
        _ => match node.attribute("role") {
            Some(role @ ("button" | "link" | "checkbox" | "radio" | "switch" | "tab")) => {
                Role::new(DisplayKind::Control, role)
            }
            _ => None,
        },
    }
}

/// Returns how to show an element without a declared role that reacts to the mouse; `None` if it is not a control.
fn interactive_kind(
    scene: &Scene,
    ax_node: Option<&AxNode>,
    at: usize,
    controls_below: usize,
    drawings: &HashSet<usize>,
) -> Option<DisplayKind> {
    let (place, node) = (&scene.nodes[at], scene.node(at));
    let is_shown = matches!(place.visibility, Visibility::InView | Visibility::Reachable);
    if node.kind != NodeKind::Element || !is_shown || matches!(&*node.tag, "html" | "body") {
        return None;
    }
    let is_inert = ax_node.is_some_and(|ax_node| ax_node.is_inert);
    if is_inert || is_hidden_link(scene, at) {
        return None;
    }
    let is_flat = place.rect.is_none_or(|rect| rect.is_empty());
    if is_flat && scene.text_below(at, 1).is_empty() {
        return None;
    }
    let is_draggable = node.attribute("draggable") == Some("true");
    let is_focusable = node.attribute("tabindex") == Some("0") && controls_below == 0;
    let is_drawn = is_shape(&node.tag)
        && drawing_of(scene, at).is_some_and(|drawing| drawings.contains(&drawing));
    let is_listened_to = node.is_clickable || is_item_of_listening_list(scene, at);
    let reacts = is_listened_to || place.starts_pointer || place.is_grip;
    if !(reacts || is_draggable || is_focusable || is_drawn) {
        return None;
    }
    // In a drawing that listens to clicks any point may matter, not only its shapes.
    if &*node.tag == "svg" && controls_below > 0 && node.is_clickable {
        return Some(DisplayKind::CompositeControl);
    }
    if controls_below == 0 {
        let is_large = place.rect.is_some_and(|rect| {
            rect.width * rect.height > 0.7 * scene.viewport.width * scene.viewport.height
        });
        // The text is too long for a name.
        let is_long = scene.text_below(at, MAX_NAME_BYTES + 1).len() > MAX_NAME_BYTES;
        return Some(if is_large || is_long {
            DisplayKind::CompositeControl
        } else {
            DisplayKind::Control
        });
    }
    // A container that listens to the events of its content is not a control, unless it looks like one.
    let looks_like_one = node.is_clickable && place.starts_pointer;
    (looks_like_one || is_draggable).then_some(DisplayKind::CompositeControl)
}

fn interactive_name(scene: &Scene, at: usize) -> String {
    let node = scene.node(at);
    match &*node.tag {
        "tr" => return "row".to_owned(),
        "td" | "th" => return "cell".to_owned(),
        "li" => return "item".to_owned(),
        "img" => return "image".to_owned(),
        tag @ ("svg" | "label") => return tag.to_owned(),
        tag if is_shape(tag) => return tag.to_owned(),
        _ => {}
    }
    if node.is_clickable || scene.nodes[at].starts_pointer {
        return "clickable".to_owned();
    }
    if scene.nodes[at].is_grip {
        return "grip".to_owned();
    }
    "element".to_owned()
}

fn lets_pointer_through(scene: &Scene, at: usize) -> bool {
    scene
        .layout(at)
        .is_some_and(|layout| &*layout.styles.pointer_events == "none")
}

/// Returns whether an element's content can be scrolled.
pub(super) fn is_scroller(scene: &Scene, at: usize) -> bool {
    let node = scene.node(at);
    let is_box = node.kind == NodeKind::Element
        && !matches!(&*node.tag, "html" | "body" | "select" | "textarea");
    is_box
        && scene.nodes[at].visibility != Visibility::Hidden
        && scene.layout(at).is_some_and(|layout| {
            layout.overflow_height > 20.0 && matches!(&*layout.styles.overflow_y, "auto" | "scroll")
        })
}

pub(super) fn is_shape(tag: &str) -> bool {
    matches!(
        tag,
        "circle"
            | "rect"
            | "ellipse"
            | "path"
            | "polygon"
            | "polyline"
            | "line"
            | "text"
            | "g"
            | "use"
    )
}

/// Returns the drawings with a shape that reacts to the pointer. All shapes of such a drawing are shown, as targets or
/// for comparison.
fn interactive_drawings(scene: &Scene) -> HashSet<usize> {
    (0..scene.nodes.len())
        .filter(|at| scene.node(*at).is_clickable || scene.nodes[*at].starts_pointer)
        .filter_map(|at| match &*scene.node(at).tag {
            "svg" => Some(at),
            tag if is_shape(tag) => drawing_of(scene, at),
            _ => None,
        })
        .filter(|drawing| !is_inside_control(scene, *drawing))
        .collect()
}

/// Returns the drawing that a shape is part of.
pub(super) fn drawing_of(scene: &Scene, at: usize) -> Option<usize> {
    let mut parent = scene.nodes[at].parent;
    while let Some(above) = parent {
        match &*scene.node(above).tag {
            "svg" => return Some(above),
            "g" | "a" => parent = scene.nodes[above].parent,
            _ => return None,
        }
    }
    None
}

/// Returns whether a node is an item of a list that handles the events of all its items, such as a sortable list.
fn is_item_of_listening_list(scene: &Scene, at: usize) -> bool {
    let Some(parent) = scene.nodes[at].parent else {
        return false;
    };
    let list = scene.node(parent);
    let is_item = matches!(
        (&*list.tag, &*scene.node(at).tag),
        ("ul" | "ol" | "menu", "li") | ("table" | "tbody", "tr")
    );
    is_item && list.is_clickable
}

fn is_inside_control(scene: &Scene, at: usize) -> bool {
    let parent = scene.nodes[at].parent.map(|parent| scene.node(parent));
    parent.is_some_and(|parent| matches!(&*parent.tag, "a" | "button"))
}

/// Returns the indices of the labels whose controls are shown.
fn labels_of_controls(scene: &Scene) -> HashSet<usize> {
    let is_control = |at: &usize| {
        let node = scene.node(*at);
        matches!(&*node.tag, "input" | "select" | "textarea")
            && scene.nodes[*at].visibility != Visibility::Hidden
    };
    let places = 0..scene.nodes.len();
    let controls = places.clone().filter(is_control);
    let ids: HashSet<(usize, &str)> = controls
        .filter_map(|at| Some((scene.nodes[at].document, scene.node(at).attribute("id")?)))
        .collect();
    let is_label = |at: &usize| {
        let node = scene.node(*at);
        let target = node
            .attribute("for")
            .map(|target| (scene.nodes[*at].document, target));
        &*node.tag == "label"
            && (target.is_some_and(|target| ids.contains(&target))
                || (*at..scene.nodes[*at].end).any(|below| is_control(&below)))
    };
    places.filter(is_label).collect()
}
