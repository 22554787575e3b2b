//! Suggests similar names for a name that does not exist.

use super::arguments::store_failed;
use super::show::shown;
use lango_core::{ToolError, UserId};
use lango_store::Store;
use lango_store::graph::{Name, NameKind};

/// How many names before and after the given one, in alphabetical order, are compared with it. So a typo in the first
/// letters is not found; that would need another index.
const COMPARED: usize = 40;

const MAX_SUGGESTIONS: usize = 3;

/// Minimum similarity of a suggestion, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.6;

/// Returns a remark with suggestions if the name is not known; `None` if it is.
pub(super) async fn unknown(
    graph: &Store,
    user: &UserId,
    noun: NameKind,
    name: &Name,
) -> Result<Option<String>, ToolError> {
    let near = graph.names_near(user, noun, name.clone(), COMPARED);
    let near = near.await.map_err(store_failed)?;
    let key = |name: &Name| match noun {
        NameKind::Entity => name.key(),
        NameKind::Predicate => name.predicate_key(),
    };
    let wanted = key(name);
    if near.first().is_some_and(|first| key(first) == wanted) {
        return Ok(None);
    }
    let mut ranked: Vec<_> = near
        .iter()
        .map(|near| (similarity(&wanted, &key(near)), near))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .collect();
    ranked.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let suggestions: Vec<_> = ranked
        .iter()
        .take(MAX_SUGGESTIONS)
        .map(|(_, near)| format!("`{}`", shown(near)))
        .collect();
    let what = match noun {
        NameKind::Entity => "nothing is known about",
        NameKind::Predicate => "no fact has the predicate",
    };
    let name = shown(name);
    Ok(Some(match suggestions.as_slice() {
        [] => format!("{what} `{name}`"),
        suggestions => format!(
            "{what} `{name}`; did you mean {}?",
            suggestions.join(" or ")
        ),
    }))
}

/// Returns the similarity of two names by edit distance; high if one starts with the other.
fn similarity(wanted: &str, known: &str) -> f64 {
    let is_part = wanted.chars().count() > 1 && known.starts_with(wanted)
        || known.chars().count() > 1 && wanted.starts_with(known);
    let similarity = strsim::normalized_damerau_levenshtein(wanted, known);
    if is_part {
        similarity.max(0.9)
    } else {
        similarity
    }
}
