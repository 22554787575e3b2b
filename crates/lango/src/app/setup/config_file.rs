//! Reads single values of the user's configuration file, which [`lango_config::edit`] changes.

use crate::app::Failure;
use lango_config::edit;
use std::path::Path;
use toml::{Table, Value};

/// Returns the text at a key of the file; `None` if the file does not set it to a text.
pub(super) fn text_at(path: &Path, key: &[&str]) -> Result<Option<String>, Failure> {
    Ok(match value_at(path, key)? {
        Some(Value::String(text)) => Some(text),
        _ => None,
    })
}

/// Returns the names in a table of the file.
pub(super) fn names_in(path: &Path, key: &[&str]) -> Result<Vec<String>, Failure> {
    Ok(match value_at(path, key)? {
        Some(Value::Table(table)) => table.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    })
}

fn value_at(path: &Path, key: &[&str]) -> Result<Option<Value>, Failure> {
    let Some(text) = edit::read(path)? else {
        return Ok(None);
    };
    let table = text.parse::<Table>().map_err(|error| {
        let problem = error.message();
        Failure::config(format!("cannot read `{}`: {problem}", path.display()))
            .next("fix the file; `lango config check` checks it")
    })?;
    let mut value = Value::Table(table);
    for name in key {
        let below = match &mut value {
            Value::Table(table) => table.remove(*name),
            _ => None,
        };
        match below {
            Some(below) => value = below,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}
