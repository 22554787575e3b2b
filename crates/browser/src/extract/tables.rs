//! Extracts the tables of a page, as Markdown or as JSON with the header's cells as keys.

use super::ExtractFormat;
use crate::observe::{Scene, cut};
use serde_json::{Map, Value};

/// Maximum length of a cell, in bytes.
const MAX_CELL_BYTES: usize = 500;
/// Maximum number of columns; the rest of a wider table is dropped.
const MAX_COLUMNS: usize = 100;

struct Table {
    caption: String,
    /// The first row, if it is a header.
    header: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
}

/// Writes all tables of a scene, or only those below the node `scope`.
pub(super) fn write(scene: &Scene, scope: Option<usize>, format: ExtractFormat) -> String {
    let places = scope.map_or(0..scene.len(), |scope| scene.below(scope));
    let tables: Vec<Table> = places
        .filter(|at| is_table(scene, *at) && scene.is_shown(*at))
        // A table that contains tables is used only for layout.
        .filter(|at| !scene.below(*at).skip(1).any(|below| is_table(scene, below)))
        .map(|at| read(scene, at))
        .filter(|table| !table.rows.is_empty())
        .collect();
    let mut text = String::new();
    for (index, table) in tables.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        if tables.len() > 1 || !table.caption.is_empty() {
            text.push_str(&format!(
                "[table {} of {}] {}\n",
                index + 1,
                tables.len(),
                table.caption
            ));
        }
        match format {
            ExtractFormat::Json => write_json(&mut text, table),
            ExtractFormat::Markdown | ExtractFormat::Text => write_markdown(&mut text, table),
        }
    }
    text
}

fn is_table(scene: &Scene, at: usize) -> bool {
    scene.tag(at) == "table"
        || matches!(
            scene.attribute(at, "role"),
            Some("table" | "grid" | "treegrid")
        )
}

fn is_row(scene: &Scene, at: usize) -> bool {
    scene.tag(at) == "tr" || scene.attribute(at, "role") == Some("row")
}

fn is_cell(scene: &Scene, at: usize) -> bool {
    matches!(scene.tag(at), "td" | "th")
        || matches!(
            scene.attribute(at, "role"),
            Some("cell" | "gridcell" | "columnheader" | "rowheader")
        )
}

fn is_header_cell(scene: &Scene, at: usize) -> bool {
    scene.tag(at) == "th" || scene.attribute(at, "role") == Some("columnheader")
}

fn read(scene: &Scene, table: usize) -> Table {
    let caption = scene.below(table).find(|at| scene.tag(*at) == "caption");
    let mut header = None;
    let mut rows = Vec::new();
    for row in scene
        .below(table)
        .filter(|at| is_row(scene, *at) && scene.is_shown(*at))
    {
        let cells: Vec<usize> = scene
            .below(row)
            .skip(1)
            .filter(|at| is_cell(scene, *at) && scene.is_shown(*at))
            .collect();
        let is_header = !cells.is_empty() && cells.iter().all(|cell| is_header_cell(scene, *cell));
        let texts = read_cells(scene, &cells);
        if is_header && header.is_none() && rows.is_empty() {
            header = Some(texts);
        } else if !texts.is_empty() {
            rows.push(texts);
        }
    }
    Table {
        caption: caption
            .map(|at| scene.text_below(at, MAX_CELL_BYTES))
            .unwrap_or_default(),
        header,
        rows,
    }
}

fn read_cells(scene: &Scene, cells: &[usize]) -> Vec<String> {
    let mut texts = Vec::new();
    for cell in cells {
        let text = cut(&scene.text_below(*cell, MAX_CELL_BYTES), MAX_CELL_BYTES);
        let span = scene
            .attribute(*cell, "colspan")
            .and_then(|span| span.parse().ok());
        let span: usize = span.unwrap_or(1).clamp(1, MAX_COLUMNS);
        texts.push(text);
        texts.extend(std::iter::repeat_n(String::new(), span - 1));
        if texts.len() >= MAX_COLUMNS {
            texts.truncate(MAX_COLUMNS);
            break;
        }
    }
    texts
}

fn write_markdown(text: &mut String, table: &Table) {
    let width = table
        .rows
        .iter()
        .chain(&table.header)
        .map(Vec::len)
        .max()
        .unwrap_or(0);
    let mut write_row = |cells: &[String]| {
        text.push('|');
        for column in 0..width {
            let cell = cells.get(column).map_or("", String::as_str);
            text.push_str(&format!(" {} |", cell.replace('|', "\\|")));
        }
        text.push('\n');
    };
    write_row(table.header.as_deref().unwrap_or_default());
    write_row(&vec!["---".to_owned(); width]);
    for row in &table.rows {
        write_row(row);
    }
}

fn write_json(text: &mut String, table: &Table) {
    let key = |column: usize| {
        let name = table.header.as_ref().and_then(|header| header.get(column));
        match name.map(String::as_str) {
            None | Some("") => format!("column {}", column + 1),
            Some(name) => name.to_owned(),
        }
    };
    for row in &table.rows {
        let mut object = Map::new();
        for (column, cell) in row.iter().enumerate() {
            let mut name = key(column);
            if object.contains_key(&name) {
                name = format!("{name} ({})", column + 1);
            }
            object.insert(name, Value::from(cell.as_str()));
        }
        text.push_str(&Value::Object(object).to_string());
        text.push('\n');
    }
}
