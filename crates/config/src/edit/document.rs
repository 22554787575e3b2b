//! Changes to the text of a configuration file. Everything besides the changed key stays as it is: other values,
//! comments, blank lines and the order.

use crate::quote;
use std::ops::Range;
use toml_edit::{
    Document, DocumentMut, InlineTable, Item, Key, Table, TableLike, TomlError, Value,
};

/// A text that cannot be changed.
#[derive(Debug)]
pub(super) enum EditFailure {
    Unparsable(TomlError),
    /// The key is not in the text.
    NotSet,
    /// The key's section is written in a form that cannot be changed automatically.
    Unsupported,
}

impl From<TomlError> for EditFailure {
    fn from(error: TomlError) -> Self {
        Self::Unparsable(error)
    }
}

/// Returns the text with this key set to this value.
pub(super) fn with_value(
    text: &str,
    path: &[Key],
    value: &toml::Value,
) -> Result<String, EditFailure> {
    let document = Document::parse(text)?;
    let new_text = match item_at(document.as_table(), path) {
        Some(Item::Value(old)) => {
            let span = old.span().ok_or(EditFailure::Unsupported)?;
            replaced(text, &span, &quote::render(value))
        }
        Some(_) => insert(&without(text, path)?, path, value)?,
        None => insert(text, path, value)?,
    };
    let mut expected = plain_table(text)?;
    set_plain(&mut expected, path, Some(value.clone()));
    check(&new_text, expected)?;
    Ok(new_text)
}

/// Returns the text without this key, or without everything below it if it is a section.
pub(super) fn without(text: &str, path: &[Key]) -> Result<String, EditFailure> {
    let document = Document::parse(text)?;
    let item = item_at(document.as_table(), path).ok_or(EditFailure::NotSet)?;
    let is_inline = (1..path.len()).any(|depth| {
        let above = item_at(document.as_table(), &path[..depth]);
        above.is_some_and(Item::is_inline_table)
    });
    let new_text = if is_inline {
        remove_inline(text, path)?
    } else {
        let (parents, name) = split(path)?;
        let parent = table_at(document.as_table(), parents).ok_or(EditFailure::NotSet)?;
        let key = parent.key(name.get()).ok_or(EditFailure::NotSet)?;
        let mut lines = Vec::new();
        collect_lines(text, key, item, &mut lines);
        without_lines(text, lines)
    };
    let mut expected = plain_table(text)?;
    set_plain(&mut expected, path, None);
    check(&new_text, expected)?;
    Ok(new_text)
}

fn split(path: &[Key]) -> Result<(&[Key], &Key), EditFailure> {
    let (name, parents) = path.split_last().ok_or(EditFailure::NotSet)?;
    Ok((parents, name))
}

fn item_at<'a>(root: &'a Table, path: &[Key]) -> Option<&'a Item> {
    let (first, rest) = path.split_first()?;
    let mut item = root.get(first.get())?;
    for key in rest {
        item = item.as_table_like()?.get(key.get())?;
    }
    Some(item)
}

fn table_at<'a>(root: &'a Table, path: &[Key]) -> Option<&'a dyn TableLike> {
    if path.is_empty() {
        Some(root)
    } else {
        item_at(root, path)?.as_table_like()
    }
}

fn replaced(text: &str, span: &Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..span.start], &text[span.end..])
}

/// Adds a key that the text does not have.
fn insert(text: &str, path: &[Key], value: &toml::Value) -> Result<String, EditFailure> {
    let mut document: DocumentMut = text.parse()?;
    let (parents, name) = split(path)?;
    let depth = (0..=parents.len())
        .rev()
        .find(|depth| table_at(document.as_table(), &parents[..*depth]).is_some())
        .unwrap_or(0);
    let has_all_parents = depth == parents.len();
    if !has_all_parents && is_header_table(document.as_table(), &parents[..depth]) {
        return Ok(with_section(text, parents, name, value));
    }
    let value: Value = quote::render(value).parse()?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for parent in parents {
        let new = if table.is_dotted() {
            let mut new = Table::new();
            new.set_dotted(true);
            Item::Table(new)
        } else {
            Item::Value(Value::InlineTable(InlineTable::new()))
        };
        let item = table.entry(parent.get()).or_insert(new);
        table = item.as_table_like_mut().ok_or(EditFailure::Unsupported)?;
    }
    table.insert(name.get(), Item::Value(value));
    Ok(document.to_string())
}

/// Returns whether a section can be added below this table with a `[header]`.
fn is_header_table(root: &Table, path: &[Key]) -> bool {
    path.is_empty()
        || item_at(root, path).is_some_and(|item| {
            let table = item.as_table();
            table.is_some_and(|table| !table.is_dotted())
        })
}

/// Adds a new section with one key at the end of the text.
fn with_section(text: &str, section: &[Key], name: &Key, value: &toml::Value) -> String {
    let header: Vec<String> = section.iter().map(key_text).collect();
    let before = match text.trim_end() {
        "" => String::new(),
        before => format!("{before}\n\n"),
    };
    format!(
        "{before}[{}]\n{} = {}\n",
        header.join("."),
        key_text(name),
        quote::render(value)
    )
}

fn key_text(key: &Key) -> String {
    quote::segment(key.get())
}

/// Collects the lines of a key and of everything below it. Outside of inline tables, keys and headers have lines of
/// their own.
fn collect_lines(text: &str, key: &Key, item: &Item, lines: &mut Vec<Range<usize>>) {
    match item {
        Item::None => {}
        Item::Value(value) => {
            if let (Some(name), Some(value)) = (key.span(), value.span()) {
                lines.push(whole_lines(text, name.start..value.end));
            }
        }
        Item::Table(table) => collect_table_lines(text, table, lines),
        Item::ArrayOfTables(tables) => {
            for table in tables {
                collect_table_lines(text, table, lines);
            }
        }
    }
}

fn collect_table_lines(text: &str, table: &Table, lines: &mut Vec<Range<usize>>) {
    let has_header = !table.is_dotted() && !table.is_implicit();
    if let Some(span) = table.span().filter(|_| has_header) {
        lines.push(whole_lines(text, span.start..span.start));
    }
    for (name, item) in table {
        if let Some(key) = table.key(name) {
            collect_lines(text, key, item, lines);
        }
    }
}

/// Extends a range to the lines that it is in, with the end of the last one.
fn whole_lines(text: &str, span: Range<usize>) -> Range<usize> {
    let start = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[span.end..].find('\n');
    start..end.map_or(text.len(), |end| span.end + end + 1)
}

fn without_lines(text: &str, mut lines: Vec<Range<usize>>) -> String {
    lines.sort_by_key(|range| range.start);
    let mut rest = String::with_capacity(text.len());
    let mut done = 0;
    for range in lines {
        if range.start >= done {
            rest.push_str(&text[done..range.start]);
            done = range.end;
        }
    }
    rest.push_str(&text[done..]);
    rest
}

fn remove_inline(text: &str, path: &[Key]) -> Result<String, EditFailure> {
    let mut document: DocumentMut = text.parse()?;
    let (parents, name) = split(path)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for parent in parents {
        let item = table.get_mut(parent.get()).ok_or(EditFailure::NotSet)?;
        table = item.as_table_like_mut().ok_or(EditFailure::NotSet)?;
    }
    table.remove(name.get());
    Ok(document.to_string())
}

/// Fails if the text does not mean exactly what was intended.
fn check(new_text: &str, mut expected: toml::Table) -> Result<(), EditFailure> {
    let mut actual: toml::Table = new_text.parse().map_err(|_| EditFailure::Unsupported)?;
    prune(&mut actual);
    prune(&mut expected);
    if actual == expected {
        Ok(())
    } else {
        Err(EditFailure::Unsupported)
    }
}

fn plain_table(text: &str) -> Result<toml::Table, EditFailure> {
    text.parse().map_err(|_| EditFailure::Unsupported)
}

fn set_plain(table: &mut toml::Table, path: &[Key], value: Option<toml::Value>) {
    match (path, value) {
        ([], _) => {}
        ([name], None) => {
            table.remove(name.get());
        }
        ([name], Some(value)) => {
            table.insert(name.get().to_owned(), value);
        }
        ([name, rest @ ..], value) => {
            let below = table
                .entry(name.get())
                .or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let Some(below) = below.as_table_mut() {
                set_plain(below, rest, value);
            }
        }
    }
}

/// Removes empty tables, which set nothing.
fn prune(table: &mut toml::Table) {
    table.retain(|_, value| match value {
        toml::Value::Table(below) => {
            prune(below);
            !below.is_empty()
        }
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(name: &str) -> Vec<Key> {
        Key::parse(name).unwrap()
    }

    fn set(text: &str, name: &str, value: &str) -> String {
        with_value(text, &path(name), &value.parse().unwrap()).unwrap()
    }

    fn unset(text: &str, name: &str) -> String {
        without(text, &path(name)).unwrap()
    }

    #[test]
    fn a_new_section_goes_to_the_end_and_a_new_key_into_its_section() {
        assert_eq!(
            set("", "agent.model", "\"a/b\""),
            "[agent]\nmodel = \"a/b\"\n"
        );
        let text = "# mine\n[agent]\nmodel = \"a/b\" # fast\n# the end\n";
        let text = set(text, "agent.maxCost", "1.5");
        assert_eq!(
            text,
            "# mine\n[agent]\nmodel = \"a/b\" # fast\nmaxCost = 1.5\n# the end\n"
        );
        let text = set(&text, "mcp.servers.git.command", "[\"uvx\", \"git\"]");
        assert!(
            text.ends_with("# the end\n\n[mcp.servers.git]\ncommand = [\"uvx\", \"git\"]\n"),
            "{text}"
        );
    }

    #[test]
    fn a_replaced_value_leaves_its_comment_and_its_neighbours() {
        let text = "[agent] # all agents\n\n# why\nmodel   =  'old'   # really\nmaxCost = 1\n";
        assert_eq!(
            set(text, "agent.model", "\"new\""),
            text.replace("'old'", "\"new\"")
        );
    }

    #[test]
    fn dotted_keys_and_inline_tables_stay_what_they_are() {
        let text = "agent.model = \"x\"\nproviders.a.kind = \"openai\"\n";
        let text = set(text, "agent.maxCost", "2.0");
        let text = set(&text, "providers.b.kind", "\"gemini\"");
        assert!(!text.contains('['), "{text}");
        assert_eq!(
            set("agent = { model = \"x\" }\n", "agent.maxCost", "2.0"),
            "agent = { model = \"x\" , maxCost = 2.0 }\n"
        );
    }

    #[test]
    fn unset_removes_the_key_and_leaves_every_comment() {
        let text = "# file\n\n# the model\nagent.model = \"x\" # gone\nagent.maxCost = 1\n";
        assert_eq!(
            unset(text, "agent.model"),
            "# file\n\n# the model\nagent.maxCost = 1\n"
        );
        let text = "[a]\nx = [\n  1,\n]\ny = 2\n";
        assert_eq!(unset(text, "a.x"), "[a]\ny = 2\n");
        assert_eq!(unset("a = { x = 1, y = 2 }\n", "a.x"), "a = { y = 2 }\n");
    }

    #[test]
    fn a_section_is_removed_with_its_header_and_nothing_else() {
        let text = "[mcp.servers.a]\nurl = \"x\"\n\n[mcp.servers.b]\nurl = \"y\"\n[mcp.servers.b.env]\nK = \"v\"\n\n[agent]\nmaxCost = 1\n";
        assert_eq!(
            unset(text, "mcp.servers.b"),
            "[mcp.servers.a]\nurl = \"x\"\n\n\n[agent]\nmaxCost = 1\n"
        );
        let rules = "[[approval.rules]]\naction = \"deny\"\n[[approval.rules]]\naction = \"ask\"\n[agent]\nmaxCost = 1\n";
        assert_eq!(unset(rules, "approval.rules"), "[agent]\nmaxCost = 1\n");
        let text = set(rules, "approval.rules", "[]");
        assert!(text.parse::<toml::Table>().is_ok() && text.contains("rules = []"));
    }

    #[test]
    fn a_key_that_is_not_there_and_a_broken_text_are_told_apart() {
        let missing = without("a.b = 1\n", &path("a.c"));
        assert!(matches!(missing, Err(EditFailure::NotSet)));
        let broken = without("a = \n", &path("a"));
        assert!(matches!(broken, Err(EditFailure::Unparsable(_))));
        let scalar = with_value("a = 1\n", &path("a.b"), &1.into());
        assert!(matches!(scalar, Err(EditFailure::Unsupported)));
    }

    proptest! {
        /// Each text writes the same keys in another form.
        #[test]
        fn no_sequence_of_changes_fails_or_loses_a_comment(
            form in 0usize..4,
            steps in proptest::collection::vec((0usize..6, proptest::option::of(0i64..100)), 1..12),
        ) {
            const FORMS: [&str; 4] = [
                "# c0\n[a]\n# c1\nx = 1 # t\n[a.b]\ny = 2\n# c2\n[[r]]\nz = 3\n# c3\n",
                "# c0\na.x = 1\n# c1\na.b.y = 2 # t\n# c2\nr = [{ z = 3 }]\n# c3\n",
                "# c0\na = { x = 1, b = { y = 2 } }\n# c1\n# c2\n[[r]]\nz = 3\n# c3\n",
                "# c0\n# c1\n# c2\n# c3\n",
            ];
            const KEYS: [&str; 6] = ["a.x", "a.b.y", "r", "a.new", "new.k", "a.b.n.k"];
            let mut text = FORMS[form].to_owned();
            for (key, value) in steps {
                let path = path(KEYS[key]);
                let changed = match value {
                    Some(number) => with_value(&text, &path, &number.into()),
                    None => without(&text, &path),
                };
                match changed {
                    Ok(changed) => text = changed,
                    Err(EditFailure::NotSet) => prop_assert!(value.is_none()),
                    Err(failure) => prop_assert!(false, "{text}\n{path:?} {value:?} {failure:?}"),
                }
                for comment in ["# c0", "# c1", "# c2", "# c3"] {
                    prop_assert!(text.contains(comment), "{comment} is lost:\n{text}");
                }
            }
        }
    }
}
