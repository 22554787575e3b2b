//! What to say of a name that nothing has: names that are written nearly the same.

use super::arguments::store_failed;
use super::show::shown;
use lango_core::{ToolError, UserId};
use lango_store::Store;
use lango_store::graph::{Name, NameKind};

/// How many names around it in the alphabet are compared, each way. A slip in the first letters is not found; that
/// would take another index.
const COMPARED: usize = 40;

/// How many are told.
const TOLD: usize = 3;

/// How alike two names must be, from 0 to 1.
const LEAST_ALIKE: f64 = 0.6;

/// Whether the name is known, and if not, what to say of it.
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
        .map(|near| (likeness(&wanted, &key(near)), near))
        .filter(|(likeness, _)| *likeness >= LEAST_ALIKE)
        .collect();
    ranked.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let told: Vec<_> = ranked
        .iter()
        .take(TOLD)
        .map(|(_, near)| format!("`{}`", shown(near)))
        .collect();
    let what = match noun {
        NameKind::Entity => "nothing is known of",
        NameKind::Predicate => "no fact has the predicate",
    };
    let name = shown(name);
    Ok(Some(match told.as_slice() {
        [] => format!("{what} `{name}`"),
        told => format!("{what} `{name}`; there is {}", told.join(", ")),
    }))
}

/// One that begins with the other is nearly it; else what counts is how many letters differ.
fn likeness(wanted: &str, known: &str) -> f64 {
    let is_part = wanted.chars().count() > 1 && known.starts_with(wanted)
        || known.chars().count() > 1 && wanted.starts_with(known);
    let alike = strsim::normalized_damerau_levenshtein(wanted, known);
    if is_part { alike.max(0.9) } else { alike }
}
