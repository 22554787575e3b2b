//! Renders data tables as Markdown tables. Layout tables are rendered as the blocks that they contain.

use super::dom::NodeId;
use super::markdown::Renderer;

/// Maximum number of columns and rows. Further columns are dropped; a note gives the number of further rows.
const MAX_COLUMNS: usize = 30;
const MAX_ROWS: usize = 2000;

/// Maximum length of an ordinary cell. A table with too many longer cells counts as a layout table.
const CELL_BYTES: usize = 400;

/// Returns whether a table contains data: it has several rows and columns, and few large cells.
pub(super) fn is_data(renderer: &Renderer<'_>, table: NodeId) -> bool {
    let dom = renderer.dom;
    if matches!(dom.attribute(table, "role"), Some("presentation" | "none")) {
        return false;
    }
    let inner = dom.walk(table, |node| renderer.is_dropped(node));
    if inner.iter().skip(1).any(|node| dom.name(*node) == "table") {
        return false;
    }
    let has_header = inner
        .iter()
        .any(|node| matches!(dom.name(*node), "th" | "caption"));
    let cells = inner
        .iter()
        .filter(|node| matches!(dom.name(**node), "td" | "th"));
    let long = cells.filter(|cell| dom.line(**cell).len() > CELL_BYTES);
    let rows = rows(renderer, table);
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let max_long = if has_header { rows.len() } else { 0 };
    columns >= 2 && rows.len() >= 2 && long.count() <= max_long
}

/// Returns the cells of each row, in the order of the page.
fn rows(renderer: &Renderer<'_>, table: NodeId) -> Vec<Vec<NodeId>> {
    let dom = renderer.dom;
    let is_cell =
        |node: &NodeId| matches!(dom.name(*node), "td" | "th") && !renderer.is_dropped(*node);
    let inner = dom.walk(table, |node| renderer.is_dropped(node));
    let rows = inner.into_iter().filter(|node| dom.name(*node) == "tr");
    let rows = rows.map(|row| dom.children(row).iter().copied().filter(is_cell).collect());
    rows.filter(|row: &Vec<NodeId>| !row.is_empty()).collect()
}

pub(super) fn render(renderer: &mut Renderer<'_>, table: NodeId) {
    renderer.writer.end_block();
    let dom = renderer.dom;
    let inner = dom.walk(table, |node| renderer.is_dropped(node));
    if let Some(caption) = inner.iter().find(|node| dom.name(**node) == "caption") {
        renderer.children(*caption);
        renderer.writer.end_block();
    }
    let all = rows(renderer, table);
    let mut lines: Vec<Vec<String>> = Vec::new();
    for row in all.iter().take(MAX_ROWS) {
        let mut cells = Vec::new();
        for cell in row {
            cells.push(cell_text(renderer, *cell));
            let span = dom
                .attribute(*cell, "colspan")
                .and_then(|span| span.parse().ok());
            let more = span.unwrap_or(1).clamp(1, MAX_COLUMNS) - 1;
            cells.extend(std::iter::repeat_n(String::new(), more));
            if cells.len() >= MAX_COLUMNS {
                break;
            }
        }
        cells.truncate(MAX_COLUMNS);
        if cells.iter().any(|cell| !cell.is_empty()) {
            lines.push(cells);
        }
    }
    let width = lines.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for (number, mut cells) in lines.into_iter().enumerate() {
        cells.resize(width, String::new());
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
        if number == 0 {
            text.push_str(&format!("|{}\n", " --- |".repeat(width)));
        }
    }
    if all.len() > MAX_ROWS {
        text.push_str(&format!("({} more rows)\n", all.len() - MAX_ROWS));
    }
    if !text.is_empty() {
        renderer.writer.block(&text);
    }
}

/// Renders a cell on one line.
fn cell_text(renderer: &mut Renderer<'_>, cell: NodeId) -> String {
    let outer = std::mem::take(&mut renderer.writer);
    renderer.children(cell);
    let inner = std::mem::replace(&mut renderer.writer, outer);
    let (text, links) = inner.finish();
    renderer.writer.add_links(links);
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}
