//! Classifies elements by their accessibility data, tag and event listeners.

use super::describe::LONGEST_NAME;
use super::scene::{Scene, Sight};
use super::semantics::{Meaning, Semantics};
use super::snapshot::NodeKind;
use std::collections::HashSet;

/// The appearance of an element in an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A control; it has a handle, and its name contains its text.
    Control,
    /// A control that contains other items.
    OpenControl,
    /// A line without a handle whose name contains its text: a heading, an image.
    Label,
    /// A group that fits on one line: a row, a list item.
    Group,
    /// A container with a line of its own.
    Section,
    /// A container that is only printed where its content is cut.
    Silent,
}

/// A role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) form: Form,
    pub(super) name: String,
}

/// The roles of all nodes of a scene, by index.
#[derive(Debug)]
pub(super) struct Roles {
    pub(super) by_place: Vec<Option<Role>>,
    /// Labels whose controls are shown with the same text.
    pub(super) labels: HashSet<usize>,
}

/// Determines the role of each node of a scene.
pub(super) fn assign(scene: &Scene, semantics: &Semantics) -> Roles {
    let labels = labels_of_controls(scene);
    let drawings = reacting_drawings(scene);
    let count = scene.nodes.len();
    let mut roles: Vec<Option<Role>> = Vec::with_capacity(count);
    for at in 0..count {
        roles.push(semantic_role(scene, semantics, at));
    }
    // Elements that only listen depend on their content, so the nodes are visited in reverse.
    let mut controls_below = vec![0usize; count];
    for at in (0..count).rev() {
        if roles[at].is_none() && is_scroller(scene, at) {
            roles[at] = Role::new(Form::Section, "area");
        } else if roles[at].as_ref().is_none_or(Role::is_vague)
            && !labels.contains(&at)
            && let Some(form) =
                reacting_form(scene, semantics.get(&at), at, controls_below[at], &drawings)
        {
            roles[at] = Some(Role {
                form,
                name: reacting_name(scene, at),
            });
        }
        let own = roles[at].as_ref().is_some_and(|role| role.is_control());
        if let Some(parent) = scene.nodes[at].parent {
            controls_below[parent] += controls_below[at] + usize::from(own);
        }
    }
    Roles {
        by_place: roles,
        labels,
    }
}

impl Role {
    fn new(form: Form, name: &str) -> Option<Self> {
        Some(Self {
            form,
            name: name.to_owned(),
        })
    }

    /// Returns whether the role says less than an event listener does.
    fn is_vague(&self) -> bool {
        matches!(self.form, Form::Group | Form::Silent)
    }

    pub(super) fn is_control(&self) -> bool {
        matches!(self.form, Form::Control | Form::OpenControl)
    }
}

/// Returns the role that an element declares.
fn semantic_role(scene: &Scene, semantics: &Semantics, at: usize) -> Option<Role> {
    let node = scene.node(at);
    if node.kind != NodeKind::Element || scene.nodes[at].sight == Sight::Hidden {
        return None;
    }
    let meaning = semantics.get(&at);
    if meaning.is_some_and(|meaning| meaning.is_inert) {
        return None;
    }
    if is_hidden_link(scene, at) {
        return None;
    }
    if let Some(role) = role_of_tag_first(scene, at) {
        return Some(role);
    }
    let known = meaning.filter(|meaning| !meaning.is_ignored);
    let role = known.and_then(|meaning| role_of_meaning(meaning, node.is_clickable));
    role.or_else(|| role_of_tag(scene, at, meaning))
}

/// Returns whether an element is a link that is hidden from assistive technology. Such a link accompanies a visible one,
/// such as the picture of a product.
fn is_hidden_link(scene: &Scene, at: usize) -> bool {
    let node = scene.node(at);
    &*node.tag == "a" && node.attribute("href").is_some() && scene.nodes[at].is_aria_hidden
}

/// Elements whose tag says more than their role.
fn role_of_tag_first(scene: &Scene, at: usize) -> Option<Role> {
    let node = scene.node(at);
    match &*node.tag {
        "input" => match node.attribute("type").unwrap_or_default() {
            "file" => Role::new(Form::Control, "file"),
            kind @ ("date" | "time" | "month" | "week" | "datetime-local" | "color") => {
                Role::new(Form::Control, kind)
            }
            "hidden" => None,
            _ => None,
        },
        "iframe" | "frame" => Role::new(Form::Section, "frame"),
        "canvas" if !lets_pointer_through(scene, at) => Role::new(Form::Control, "canvas"),
        "video" | "audio" => Role::new(Form::Control, &node.tag),
        _ => match node.attribute("contenteditable") {
            Some("" | "true" | "plaintext-only") => Role::new(Form::Control, "textbox"),
            _ => None,
        },
    }
}

fn role_of_meaning(meaning: &Meaning, is_clickable: bool) -> Option<Role> {
    let name = meaning.role.as_str();
    let form = match name {
        "link" | "button" | "textbox" | "searchbox" | "combobox" | "checkbox" | "radio"
        | "switch" | "slider" | "spinbutton" | "tab" | "menuitem" | "menuitemcheckbox"
        | "menuitemradio" | "option" | "treeitem" | "scrollbar" => Form::Control,
        "listbox" => Form::OpenControl,
        "DisclosureTriangle" | "PopUpButton" | "ToggleButton" | "DisclosureTriangleGrouped" => {
            return Role::new(Form::Control, "button");
        }
        "heading" => Form::Label,
        "image" | "img" | "graphics-document" if !is_clickable => {
            return if meaning.name.is_empty() {
                None
            } else {
                Role::new(Form::Label, "image")
            };
        }
        "progressbar" | "meter" | "tooltip" | "ProgressIndicator" => Form::Label,
        "row" | "listitem" | "article" if !is_clickable => Form::Group,
        "dialog" | "alertdialog" | "alert" | "navigation" | "search" | "table" | "grid"
        | "treegrid" | "tablist" | "menu" | "menubar" | "tree" | "toolbar" => Form::Section,
        "status" | "log" if meaning.name.is_empty() => Form::Silent,
        "form" | "region" | "group" | "radiogroup" | "complementary" | "status"
            if !meaning.name.is_empty() =>
        {
            Form::Section
        }
        "list" | "main" | "feed" | "form" | "region" | "group" => Form::Silent,
        _ => return None,
    };
    Role::new(form, name)
}

/// Returns the role of an element without accessibility data.
fn role_of_tag(scene: &Scene, at: usize, meaning: Option<&Meaning>) -> Option<Role> {
    let node = scene.node(at);
    let is_unknown = meaning.is_none();
    match &*node.tag {
        "a" if node.attribute("href").is_some() => Role::new(Form::Control, "link"),
        "button" | "summary" => Role::new(Form::Control, "button"),
        "select" => Role::new(Form::Control, "combobox"),
        "textarea" => Role::new(Form::Control, "textbox"),
        "input" => Role::new(
            Form::Control,
            match node.attribute("type").unwrap_or("text") {
                "hidden" => return None,
                "submit" | "button" | "reset" | "image" => "button",
                kind @ ("checkbox" | "radio") => kind,
                "range" => "slider",
                "number" => "spinbutton",
                _ => "textbox",
            },
        ),
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if is_unknown => Role::new(Form::Label, "heading"),
        "nav" if is_unknown => Role::new(Form::Section, "navigation"),
        "tr" => Role::new(Form::Group, "row"),
        "table" if is_unknown => Role::new(Form::Section, "table"),
        "li" => Role::new(Form::Group, "listitem"),
        "ul" | "ol" | "main" => Role::new(Form::Silent, "list"),
        "article" => Role::new(Form::Group, "article"),
        "img"
            if is_unknown
                && node.attribute("alt").is_some_and(|alt| !alt.is_empty())
                && !node.is_clickable =>
        {
            Role::new(Form::Label, "image")
        }
        // Buttons for the mouse only, such as the arrows of a number field, are hidden from assistive technology.
        _ => match node.attribute("role") {
            Some(role @ ("button" | "link" | "checkbox" | "radio" | "switch" | "tab")) => {
                Role::new(Form::Control, role)
            }
            _ => None,
        },
    }
}

/// Returns whether an element without a declared role is a control.
fn reacting_form(
    scene: &Scene,
    meaning: Option<&Meaning>,
    at: usize,
    controls_below: usize,
    drawings: &HashSet<usize>,
) -> Option<Form> {
    let (place, node) = (&scene.nodes[at], scene.node(at));
    let is_shown = matches!(place.sight, Sight::InView | Sight::Reachable);
    if node.kind != NodeKind::Element || !is_shown || matches!(&*node.tag, "html" | "body") {
        return None;
    }
    let is_inert = meaning.is_some_and(|meaning| meaning.is_inert);
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
    // Clicks may be meant for any point of a drawing, not only for its shapes.
    if &*node.tag == "svg" && controls_below > 0 && node.is_clickable {
        return Some(Form::OpenControl);
    }
    if controls_below == 0 {
        let is_large = place.rect.is_some_and(|rect| {
            rect.width * rect.height > 0.7 * scene.viewport.width * scene.viewport.height
        });
        // A name would not contain the text written in it.
        let is_long = scene.text_below(at, LONGEST_NAME + 1).len() > LONGEST_NAME;
        return Some(if is_large || is_long {
            Form::OpenControl
        } else {
            Form::Control
        });
    }
    // A container that listens for events of its content is no control, unless it looks like one.
    let looks_like_one = node.is_clickable && place.starts_pointer;
    (looks_like_one || is_draggable).then_some(Form::OpenControl)
}

fn reacting_name(scene: &Scene, at: usize) -> String {
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

/// Returns whether its content scrolls.
pub(super) fn is_scroller(scene: &Scene, at: usize) -> bool {
    let node = scene.node(at);
    let is_box = node.kind == NodeKind::Element
        && !matches!(&*node.tag, "html" | "body" | "select" | "textarea");
    is_box
        && scene.nodes[at].sight != Sight::Hidden
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

/// Returns the drawings with a shape that listens to the pointer. Their other shapes matter too, as targets or for
/// comparison.
fn reacting_drawings(scene: &Scene) -> HashSet<usize> {
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

/// Returns whether an item belongs to a list that listens for all of its items, such as a sortable one.
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

/// Returns the labels whose controls are shown anyway, by index.
fn labels_of_controls(scene: &Scene) -> HashSet<usize> {
    let is_control = |at: &usize| {
        let node = scene.node(*at);
        matches!(&*node.tag, "input" | "select" | "textarea")
            && scene.nodes[*at].sight != Sight::Hidden
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
