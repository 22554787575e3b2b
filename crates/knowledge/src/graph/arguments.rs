//! Parses and checks the arguments of the graph tools.

use lango_core::{StoreError, Text, ToolError};
use lango_store::graph::Name;

/// Parses a name.
pub(super) fn name(argument: &str, text: &str) -> Result<Name, ToolError> {
    Name::new(text).map_err(|problem| {
        ToolError::new(format!(
            "`{argument}` is not a valid name: {problem}; give a short name on one line"
        ))
    })
}

/// Parses an optional name. An empty one counts as missing, because models like to fill every field.
pub(super) fn optional_name(argument: &str, text: Option<&str>) -> Result<Option<Name>, ToolError> {
    let given = text.filter(|text| !text.trim().is_empty());
    given.map(|text| name(argument, text)).transpose()
}

/// Parses an optional source, which may be longer than a name because it may be a URL.
pub(super) fn optional_source(text: Option<&str>) -> Result<Option<Text>, ToolError> {
    const MAX_CHARACTERS: usize = 1000;
    let Some(given) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    if given.chars().count() > MAX_CHARACTERS || given.contains(char::is_control) {
        return Err(ToolError::new(format!(
            "`source` must be one line of at most {MAX_CHARACTERS} characters; give a file, an address or a name"
        )));
    }
    Ok(Some(given.into()))
}

/// Parses a list of names.
pub(super) fn names(argument: &str, texts: &[String]) -> Result<Vec<Name>, ToolError> {
    const MAX_NAMES: usize = 50;
    if texts.len() > MAX_NAMES {
        return Err(ToolError::new(format!(
            "`{argument}` has {} names; at most {MAX_NAMES} are allowed",
            texts.len()
        )));
    }
    texts.iter().map(|text| name(argument, text)).collect()
}

/// Clamps a number to a maximum. Returns a remark if it was greater.
pub(super) fn bounded(
    argument: &str,
    given: Option<usize>,
    default: usize,
    max: usize,
) -> (usize, Option<String>) {
    let wanted = given.unwrap_or(default.min(max)).max(1);
    let remark =
        (wanted > max).then(|| format!("`{argument}` was {wanted}; it is limited to {max} here"));
    (wanted.min(max), remark)
}

/// Returns the error for a model when the store fails.
pub(super) fn store_failed(error: StoreError) -> ToolError {
    ToolError::new(format!("the graph is not available now: {error}"))
}
