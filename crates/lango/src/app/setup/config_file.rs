//! Changes single keys of the user's configuration file, and keeps its comments, its order and all other keys.

use crate::app::Failure;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

/// The permissions of a new file, as far as the process's mask allows them.
const NEW_FILE_MODE: u32 = 0o644;

/// A change of one key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KeyChange {
    /// The parts of the dotted name, such as `agent` and `model`.
    pub path: Vec<String>,
    /// The new value; `None` removes the key.
    pub value: Option<toml::Value>,
}

/// Returns the text with these changes.
fn edit(text: &str, changes: &[KeyChange]) -> Result<String, String> {
    let document = text.parse::<DocumentMut>();
    let mut document = document.map_err(|error| error.message().to_owned())?;
    for change in changes {
        apply(document.as_table_mut(), change)?;
    }
    Ok(document.to_string())
}

fn apply(root: &mut Table, change: &KeyChange) -> Result<(), String> {
    let Some((last, tables)) = change.path.split_last() else {
        return Ok(());
    };
    let mut table: &mut dyn TableLike = root;
    for (depth, name) in tables.iter().enumerate() {
        if !table.contains_key(name) {
            if change.value.is_none() {
                return Ok(());
            }
            table.insert(name, Item::Table(new_table(depth + 1 < tables.len())));
        }
        let below = table.get_mut(name).and_then(Item::as_table_like_mut);
        table = below.ok_or_else(|| format!("`{name}` is not a table"))?;
    }
    let Some(value) = &change.value else {
        table.remove(last);
        return Ok(());
    };
    let mut value = convert(value)?;
    if let Some(old) = table.get_mut(last).and_then(Item::as_value_mut) {
        // The decoration is the white space and the comment around the value.
        *value.decor_mut() = old.decor().clone();
        *old = value;
    } else {
        table.insert(last, Item::Value(value));
    }
    Ok(())
}

/// Creates a table. One that only contains other tables needs no header.
fn new_table(is_implicit: bool) -> Table {
    let mut table = Table::new();
    table.set_implicit(is_implicit);
    table
}

fn convert(value: &toml::Value) -> Result<Value, String> {
    let parsed = value.to_string().parse::<Value>();
    parsed.map_err(|error| error.message().to_owned())
}

/// Applies changes to the file, which is created if it is missing. Writes a temporary file and renames it, so that no
/// reader sees a partial file. Returns whether anything changed.
pub(super) fn change(path: &Path, changes: &[KeyChange]) -> Result<bool, Failure> {
    let failed = |problem: String| {
        Failure::config(format!("cannot write `{}`: {problem}", path.display()))
            .next("make the file and its folder writable, or set LANGO_HOME to a writable folder")
    };
    // The file may be a link to a file that is managed elsewhere.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = match std::fs::read_to_string(&target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        read => Some(read.map_err(|error| failed(error.to_string()))?),
    };
    let text = edit(before.as_deref().unwrap_or_default(), changes).map_err(failed)?;
    if before.as_deref() == Some(text.as_str()) {
        return Ok(false);
    }
    replace(&target, &text).map_err(|error| failed(error.to_string()))?;
    Ok(true)
}

/// Returns the text at a key of the file; `None` if the file does not set it to a text.
pub(super) fn text_at(path: &Path, key: &[&str]) -> Result<Option<String>, Failure> {
    let Some(document) = read(path)? else {
        return Ok(None);
    };
    let mut item = document.as_item();
    for name in key {
        match item.get(name) {
            Some(below) => item = below,
            None => return Ok(None),
        }
    }
    Ok(item.as_str().map(str::to_owned))
}

/// Removes a table from the file if nothing is left in it.
pub(super) fn remove_empty_table(path: &Path, key: &[&str]) -> Result<(), Failure> {
    let document = read(path)?;
    let mut item = document.as_ref().map(DocumentMut::as_item);
    for name in key {
        item = item.and_then(|item| item.get(name));
    }
    let table = item.and_then(Item::as_table_like);
    if table.is_some_and(TableLike::is_empty) {
        let removal = KeyChange {
            path: key.iter().map(|name| (*name).to_owned()).collect(),
            value: None,
        };
        change(path, &[removal])?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<DocumentMut>, Failure> {
    let failed = |problem: String| {
        Failure::config(format!("cannot read `{}`: {problem}", path.display()))
            .next("fix the file; `lango config check` checks it")
    };
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error.to_string())),
        Ok(text) => {
            let document = text.parse::<DocumentMut>();
            document
                .map(Some)
                .map_err(|error| failed(error.message().to_owned()))
        }
    }
}

fn replace(target: &Path, text: &str) -> io::Result<()> {
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    let temporary = temporary_path(target);
    let written = write_new(&temporary, target, text)
        .and_then(|()| std::fs::rename(&temporary, target))
        .and_then(|()| File::open(folder)?.sync_all());
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Writes the temporary file with the permissions of the file that it replaces.
fn write_new(temporary: &Path, target: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(NEW_FILE_MODE);
    let mut file = options.open(temporary)?;
    if let Ok(existing) = target.metadata() {
        let mode = existing.permissions().mode();
        file.set_permissions(PermissionsExt::from_mode(mode & 0o777))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn temporary_path(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str) -> KeyChange {
        KeyChange {
            path: name.split('.').map(str::to_owned).collect(),
            value: Some(value.into()),
        }
    }

    fn removal(name: &str) -> KeyChange {
        KeyChange {
            value: None,
            ..set(name, "")
        }
    }

    #[test]
    fn a_change_keeps_comments_order_and_other_keys() {
        let changes = [set("agent.model", "a/b"), set("providers.a.kind", "openai")];
        for (before, after) in [
            (
                "",
                "[agent]\nmodel = \"a/b\"\n\n[providers.a]\nkind = \"openai\"\n",
            ),
            (
                "# mine\nagent.model = 'x/y' # why\nagent.maxTokens = 5\n[providers.a]\n# local\nstream = false\n",
                "# mine\nagent.model = \"a/b\" # why\nagent.maxTokens = 5\n[providers.a]\n# local\nstream = false\nkind = \"openai\"\n",
            ),
            (
                "agent = { maxTokens = 5 }\nproviders.a.stream = false\n",
                "agent = { maxTokens = 5 , model = \"a/b\" }\nproviders.a.stream = false\nproviders.a.kind = \"openai\"\n",
            ),
        ] {
            let edited = edit(before, &changes).unwrap();
            assert_eq!(edited, after);
            assert_eq!(edit(&edited, &changes).unwrap(), after, "a second time");
        }
    }

    #[test]
    fn a_key_is_removed_alone() {
        let text = "[providers.a] # a\napiKeyEnv = 'secret:X'\nstream = false\n";
        let edited = edit(text, &[removal("providers.a.apiKeyEnv"), removal("x.y")]).unwrap();
        assert_eq!(edited, "[providers.a] # a\nstream = false\n");
    }

    #[test]
    fn a_text_that_cannot_be_changed_is_refused() {
        assert!(edit("agent = 5\n", &[set("agent.model", "a/b")]).is_err());
        assert!(edit("agent = \n", &[set("agent.model", "a/b")]).is_err());
    }
}
