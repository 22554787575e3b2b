//! Serializes the rendered documents of a page as HTML: the visible nodes with their descriptive attributes.

use crate::observe::{Scene, SceneKind};

/// Attributes that the HTML reader uses.
const ATTRIBUTES: [&str; 16] = [
    "alt", "class", "colspan", "content", "datetime", "id", "itemprop", "lang", "name", "property",
    "rel", "role", "rowspan", "start", "title", "type",
];
/// Void elements, without an end tag.
const VOID_ELEMENTS: [&str; 6] = ["br", "hr", "img", "meta", "wbr", "link"];
/// Maximum length of a page's JSON-LD in bytes.
const MAX_METADATA_BYTES: usize = 64 << 10;

/// Writes a scene, or only the part below the node `scope`.
pub(super) fn write(scene: &Scene, scope: Option<usize>) -> String {
    let places = scope.map_or(0..scene.len(), |scope| scene.below(scope));
    let mut html = String::new();
    // The elements that are not closed yet: the index where each ends, and its tag.
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut skipped_until = 0;
    for at in places {
        while let Some((_, tag)) = open.pop_if(|(end, _)| *end <= at) {
            html.push_str(&format!("</{tag}>"));
        }
        if at < skipped_until {
            continue;
        }
        let end = scene.below(at).end;
        match scene.kind(at) {
            SceneKind::Text(text) if scene.is_shown(at) => escape(&mut html, text),
            SceneKind::Element(tag) => match output_of(scene, at, tag) {
                ElementOutput::Tag => {
                    write_tag(&mut html, scene, at, tag);
                    if !VOID_ELEMENTS.contains(&tag) {
                        open.push((end, tag.to_owned()));
                    }
                }
                ElementOutput::Metadata => {
                    write_tag(&mut html, scene, at, tag);
                    let text = scene.source_text(at, MAX_METADATA_BYTES);
                    match tag {
                        // Entities are not decoded inside a script, so only what could end it is escaped.
                        "script" => html.push_str(&text.replace("</", "<\\/")),
                        _ => escape(&mut html, &text),
                    }
                    html.push_str(&format!("</{tag}>"));
                    skipped_until = end;
                }
                ElementOutput::ContentOnly => {}
                ElementOutput::Nothing => skipped_until = end,
            },
            SceneKind::Text(_) | SceneKind::Other => {}
        }
    }
    for (_, tag) in open.into_iter().rev() {
        html.push_str(&format!("</{tag}>"));
    }
    html
}

/// How to write an element.
enum ElementOutput {
    Tag,
    /// Its tag with all of its text, including hidden text.
    Metadata,
    /// Its children without its tag.
    ContentOnly,
    Nothing,
}

fn output_of(scene: &Scene, at: usize, tag: &str) -> ElementOutput {
    match tag {
        "title" if !scene.is_shown(at) => ElementOutput::Metadata,
        "script" if scene.attribute(at, "type") == Some("application/ld+json") => {
            ElementOutput::Metadata
        }
        "html" | "head" | "body" | "meta" | "br" | "wbr" => ElementOutput::Tag,
        "script" | "style" | "noscript" | "template" | "svg" | "canvas" | "video" | "audio"
        | "select" => ElementOutput::Nothing,
        // A frame's document is written inside its element.
        "iframe" | "frame" | "object" | "embed" => ElementOutput::ContentOnly,
        _ if scene.is_shown(at) => ElementOutput::Tag,
        _ => ElementOutput::ContentOnly,
    }
}

fn write_tag(html: &mut String, scene: &Scene, at: usize, tag: &str) {
    html.push('<');
    html.push_str(tag);
    let attributes = ATTRIBUTES
        .iter()
        .filter_map(|name| Some((*name, scene.attribute(at, name)?)));
    for (name, value) in attributes {
        write_attribute(html, name, value);
    }
    if let Some(link) = scene.link(at) {
        write_attribute(html, "href", &link);
    }
    html.push('>');
}

fn write_attribute(html: &mut String, name: &str, value: &str) {
    html.push_str(&format!(" {name}=\""));
    for c in value.chars() {
        match c {
            '"' => html.push_str("&quot;"),
            '&' => html.push_str("&amp;"),
            c => html.push(c),
        }
    }
    html.push('"');
}

fn escape(html: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => html.push_str("&lt;"),
            '&' => html.push_str("&amp;"),
            c => html.push(c),
        }
    }
}
