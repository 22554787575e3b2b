//! The languages that the highlighter knows.

mod compiled;
mod data;
mod scripts;

use super::language::Language;

/// Finds the language with this name, in lower case.
pub(super) fn find(name: &str) -> Option<&'static Language> {
    [compiled::LANGUAGES, scripts::LANGUAGES, data::LANGUAGES]
        .into_iter()
        .flatten()
        .find(|language| language.names.contains(&name))
}
