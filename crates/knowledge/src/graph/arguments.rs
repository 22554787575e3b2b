//! From what a model wrote to names and numbers, or to what is wrong with it.

use lango_core::{StoreError, Text, ToolError};
use lango_store::graph::Name;

/// The name in an argument.
pub(super) fn name(argument: &str, text: &str) -> Result<Name, ToolError> {
    Name::new(text).map_err(|problem| {
        ToolError::new(format!(
            "`{argument}` cannot be a name: {problem}; give a short name on one line"
        ))
    })
}

/// The name in an argument that may be left out. An empty one is left out too: models like to fill every field.
pub(super) fn optional_name(argument: &str, text: Option<&str>) -> Result<Option<Name>, ToolError> {
    let given = text.filter(|text| !text.trim().is_empty());
    given.map(|text| name(argument, text)).transpose()
}

/// The source in an argument that may be left out: longer than a name, for it may be an address.
pub(super) fn optional_source(text: Option<&str>) -> Result<Option<Text>, ToolError> {
    /// In characters.
    const LONGEST: usize = 1000;
    let Some(given) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    if given.chars().count() > LONGEST || given.contains(char::is_control) {
        return Err(ToolError::new(format!(
            "`source` is not on one line or longer than {LONGEST} characters; give a file, an address or a name"
        )));
    }
    Ok(Some(given.into()))
}

/// The names in a list.
pub(super) fn names(argument: &str, texts: &[String]) -> Result<Vec<Name>, ToolError> {
    /// More than anybody needs to name.
    const MOST: usize = 50;
    if texts.len() > MOST {
        return Err(ToolError::new(format!(
            "`{argument}` has {} names, and {MOST} are the most",
            texts.len()
        )));
    }
    texts.iter().map(|text| name(argument, text)).collect()
}

/// A number that a setting bounds, and what to say if it was beyond.
pub(super) fn bounded(
    argument: &str,
    given: Option<usize>,
    usual: usize,
    most: usize,
) -> (usize, Option<String>) {
    let wanted = given.unwrap_or(usual.min(most)).max(1);
    let remark = (wanted > most).then(|| {
        format!("`{argument}` is {most} here, the most that is allowed; {wanted} was asked for")
    });
    (wanted.min(most), remark)
}

/// What a model is told when the store fails.
pub(super) fn store_failed(error: StoreError) -> ToolError {
    ToolError::new(format!("the graph cannot be used now: {error}"))
}
