//! Builds the text for one element: its name and details.

use super::appearance::add_appearance;
use super::print::{cut, one_line, quote};
use super::roles::{DisplayKind, Role, is_scroller};
use super::scene::Scene;
use super::semantics::{AxNode, Semantics};
use super::snapshot::{Node, NodeKind};
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;

/// Maximum length of a name, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 120;
/// Maximum length of a field's value, in bytes.
const MAX_VALUE_BYTES: usize = 80;
/// Maximum length of a field's value when the field is the scope, in bytes.
const MAX_SCOPE_VALUE_BYTES: usize = 6000;
/// Maximum length of a link's address, in bytes.
const MAX_LINK_BYTES: usize = 60;
/// Maximum number of listed options.
const SHOWN_OPTIONS: usize = 6;

/// Returns the name of an element.
pub(super) fn name_of(
    scene: &Scene,
    semantics: &Semantics,
    at: usize,
    role: &Role,
    is_scope: bool,
) -> String {
    let node = scene.node(at);
    let known = semantics
        .get(&at)
        .map(|ax_node| ax_node.name.as_str())
        .unwrap_or_default();
    // The content of a container is shown anyway, so its name need not repeat it.
    let is_name_redundant =
        role.kind == DisplayKind::CompositeControl && node.attribute("aria-label").is_none();
    let mut name = if is_name_redundant {
        String::new()
    } else {
        one_line(known)
    };
    let is_field = matches!(&*node.tag, "input" | "select" | "textarea") || role.name == "textbox";
    let covers =
        matches!(role.kind, DisplayKind::Control | DisplayKind::Label) && !is_field && !is_scope;
    if name.is_empty() && covers {
        name = scene.text_below(at, 2 * MAX_NAME_BYTES);
    }
    for attribute in ["aria-label", "alt", "title", "placeholder", "name"] {
        let is_wanted = matches!(
            role.kind,
            DisplayKind::Control | DisplayKind::CompositeControl | DisplayKind::Label
        ) && (attribute != "name" || is_field);
        if name.is_empty() && is_wanted {
            name = one_line(node.attribute(attribute).unwrap_or_default());
        }
    }
    if &*node.tag == "iframe" && name.is_empty() {
        name = frame_name(scene, at);
    }
    cut(&name, MAX_NAME_BYTES)
}

/// Returns the host of a frame of another origin; empty for other frames.
fn frame_name(scene: &Scene, at: usize) -> String {
    let base = |place: usize| scene.document(place).base.as_ref();
    let (Some(inner), Some(outer)) = (scene.nodes.get(at + 1).and_then(|_| base(at + 1)), base(at))
    else {
        return String::new();
    };
    match inner.host_str() {
        Some(host) if inner.origin() != outer.origin() => host.to_owned(),
        _ => String::new(),
    }
}

/// Returns the absolute URL that an element links to; `None` if it is not an `http` or `https` link.
pub(super) fn link_of(scene: &Scene, at: usize) -> Option<Arc<str>> {
    let node = scene.node(at);
    if !matches!(&*node.tag, "a" | "area") {
        return None;
    }
    let href = node
        .attribute("href")
        .or_else(|| node.attribute("xlink:href"))?;
    let base = scene.document(at).base.as_ref();
    let url = match base {
        Some(base) => base.join(href).ok()?,
        None => lango_net::Url::parse(href).ok()?,
    };
    matches!(url.scheme(), "http" | "https").then(|| url.as_str().into())
}

/// Returns the details after the name: value, options, link, states. If the element is the scope, its value may be much
/// longer.
pub(super) fn details_of(
    scene: &Scene,
    semantics: &Semantics,
    at: usize,
    role: &Role,
    is_scope: bool,
) -> String {
    let node = scene.node(at);
    let unknown = AxNode::default();
    let ax_node = semantics.get(&at).unwrap_or(&unknown);
    let mut details = String::new();
    let longest = if is_scope {
        MAX_SCOPE_VALUE_BYTES
    } else {
        MAX_VALUE_BYTES
    };
    add_value(&mut details, scene, node, ax_node, at, role, longest);
    add_link(&mut details, scene, at);
    add_appearance(&mut details, scene, semantics, at, role);
    let tooltip = node.attribute("title").filter(|title| !title.is_empty());
    let tooltip = tooltip.unwrap_or_default();
    let is_in_name = ax_node.name.contains(tooltip) || ax_node.name.is_empty();
    if role.is_control() && !tooltip.is_empty() && !is_in_name {
        let _ = write!(
            details,
            " tooltip={}",
            quote(&cut(&one_line(tooltip), MAX_VALUE_BYTES))
        );
    }
    add_states(&mut details, scene, at, node, ax_node);
    details
}

fn add_value(
    details: &mut String,
    scene: &Scene,
    node: &Node,
    ax_node: &AxNode,
    at: usize,
    role: &Role,
    longest: usize,
) {
    if role.name == "heading" {
        let level = ax_node.property("level").and_then(Value::as_u64);
        let of_tag = node
            .tag
            .strip_prefix('h')
            .and_then(|level| level.parse().ok());
        if let Some(level) = level.or(of_tag) {
            let _ = write!(details, " h{level}");
        }
        return;
    }
    if &*node.tag == "select" {
        add_options(details, scene, ax_node, at);
        return;
    }
    let is_field = matches!(
        role.name.as_str(),
        "textbox"
            | "searchbox"
            | "combobox"
            | "slider"
            | "spinbutton"
            | "progressbar"
            | "meter"
            | "ProgressIndicator"
            | "scrollbar"
            | "date"
            | "time"
            | "month"
            | "week"
            | "datetime-local"
            | "color"
            | "file"
    );
    let value = ax_node.value.as_deref().map(one_line).unwrap_or_default();
    if is_field && !value.is_empty() {
        // The accessibility tree reveals the length of a password.
        let is_password = node
            .attribute("type")
            .is_some_and(|kind| kind.eq_ignore_ascii_case("password"));
        let value = if is_password {
            "••••".to_owned()
        } else {
            cut(&value, longest)
        };
        let _ = write!(details, " value={}", quote(&value));
    }
    if matches!(
        role.name.as_str(),
        "slider" | "spinbutton" | "meter" | "scrollbar"
    ) {
        let number = |property: &str| ax_node.property(property).and_then(Value::as_f64);
        // A field without limits reports zero for both.
        let is_limited = number("valuemin") < number("valuemax");
        for (property, attribute) in [("valuemin", "min"), ("valuemax", "max")] {
            let known = number(property).filter(|_| is_limited);
            let known = known.map(|value| value.to_string());
            let given = node.attribute(attribute).map(str::to_owned);
            if let Some(value) = given.or(known) {
                let _ = write!(details, " {attribute}={}", cut(&value, 20));
            }
        }
    }
}

fn add_options(details: &mut String, scene: &Scene, ax_node: &AxNode, at: usize) {
    let below = at + 1..scene.nodes[at].end;
    let options: Vec<usize> = below
        .filter(|below| &*scene.node(*below).tag == "option")
        .collect();
    let text = |option: &usize| cut(&option_text(scene, *option), 30);
    let chosen: Vec<String> = options
        .iter()
        .filter(|option| scene.node(**option).is_selected)
        .map(text)
        .collect();
    let value = if chosen.is_empty() {
        ax_node.value.clone().unwrap_or_default()
    } else {
        chosen.join(", ")
    };
    let _ = write!(
        details,
        " value={} options:",
        quote(&cut(&value, MAX_VALUE_BYTES))
    );
    for (index, option) in options.iter().take(SHOWN_OPTIONS).enumerate() {
        let separator = if index == 0 { "" } else { " |" };
        let _ = write!(
            details,
            "{separator} {}",
            text(option).replace(['"', '|'], " ")
        );
    }
    if options.len() > SHOWN_OPTIONS {
        let _ = write!(details, " | …(+{})", options.len() - SHOWN_OPTIONS);
    }
}

/// Returns the options of a native list, each with its name and details.
pub(super) fn options_of(scene: &Scene, at: usize) -> Vec<(usize, String, String)> {
    let options =
        (at + 1..scene.nodes[at].end).filter(|below| &*scene.node(*below).tag == "option");
    options
        .map(|option| {
            let node = scene.node(option);
            let name = option_text(scene, option);
            let mut details = String::new();
            match node.attribute("value") {
                Some(value) if !value.is_empty() && value != name => {
                    let _ = write!(
                        details,
                        " value={}",
                        quote(&cut(&one_line(value), MAX_VALUE_BYTES))
                    );
                }
                _ => {}
            }
            if node.is_selected {
                details.push_str(" [selected]");
            }
            if node.attribute("disabled").is_some() {
                details.push_str(" [disabled]");
            }
            (option, cut(&name, MAX_NAME_BYTES), details)
        })
        .collect()
}

/// Returns the label of an option. Options have no boxes, so the text is read from the document.
fn option_text(scene: &Scene, at: usize) -> String {
    let texts = (at..scene.nodes[at].end).map(|below| scene.node(below));
    let texts = texts.filter(|node| node.kind == NodeKind::Text);
    let text: String = texts.filter_map(|node| node.text.as_deref()).collect();
    match scene.node(at).attribute("label") {
        Some(label) if !label.is_empty() => one_line(label),
        _ => one_line(&text),
    }
}

fn add_link(details: &mut String, scene: &Scene, at: usize) {
    let Some(link) = link_of(scene, at) else {
        return;
    };
    let page = scene
        .documents
        .first()
        .and_then(|document| document.base.as_ref());
    let origin = page.map(|page| page.origin().ascii_serialization());
    let short = origin
        .as_deref()
        .and_then(|origin| link.strip_prefix(origin));
    let short = short.unwrap_or(&link);
    let _ = write!(details, " → {}", cut(&one_line(short), MAX_LINK_BYTES));
}

fn add_states(details: &mut String, scene: &Scene, at: usize, node: &Node, ax_node: &AxNode) {
    let mut state = |is_set: bool, name: &str| {
        if is_set {
            let _ = write!(details, " [{name}]");
        }
    };
    let is_disabled =
        ax_node.is("disabled") || (ax_node.role.is_empty() && node.attribute("disabled").is_some());
    state(is_disabled, "disabled");
    for property in ["checked", "pressed"] {
        match ax_node.property(property).and_then(Value::as_str) {
            Some("true") => state(true, property),
            Some("mixed") => state(true, "mixed"),
            _ => {}
        }
    }
    let expanded = ax_node.property("expanded").and_then(Value::as_bool);
    state(expanded == Some(true), "expanded");
    state(
        expanded == Some(false) && &*node.tag != "select",
        "collapsed",
    );
    let popup = ax_node.property("hasPopup").and_then(Value::as_str);
    let opens = match popup {
        None | Some("" | "false") => None,
        Some("true" | "menu") => Some("opens menu"),
        Some("dialog") => Some("opens dialog"),
        Some(_) => Some("opens list"),
    };
    // The role `combobox` already implies that it opens a list.
    state(
        opens.is_some() && ax_node.role != "combobox",
        opens.unwrap_or_default(),
    );
    state(ax_node.is("selected"), "selected");
    state(ax_node.is("required"), "required");
    state(ax_node.is("multiline"), "multiline");
    state(
        ax_node.is("readonly") && node.kind == NodeKind::Element && &*node.tag != "progress",
        "read-only",
    );
    // A required box is not invalid before the user checks it.
    let invalid = ax_node.property("invalid").and_then(Value::as_str);
    let is_box = ax_node.property("checked").is_some() && node.attribute("aria-invalid").is_none();
    state(
        invalid.is_some_and(|invalid| invalid != "false") && !is_box,
        "invalid",
    );
    let current = node
        .attribute("aria-current")
        .filter(|current| !matches!(*current, "" | "false"));
    state(current.is_some(), "current");
    state(ax_node.is("modal"), "modal");
    state(node.attribute("draggable") == Some("true"), "draggable");
    state(node.attribute("type") == Some("password"), "password");
    state(node.attribute("multiple").is_some(), "multiple");
    state(is_scroller(scene, at), "scrollable");
}
