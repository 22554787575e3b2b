//! Asks the index for the nearest vectors.

use super::State;
use super::statements as sql;
use crate::library::nearest::nearest_first;
use crate::library::vectors::cosine;
use crate::postgres::asking::{row, rows};
use crate::postgres::failure::Failure;
use crate::postgres::rows::limit;
use deadpool_postgres::Transaction;
use std::fmt::Write as _;
use tokio_postgres::Row;

/// How many the index keeps in view for one that is wanted, and at least. It takes 1,000 at most.
const IN_VIEW: usize = 2;
const LEAST_IN_VIEW: usize = 100;
const MOST_IN_VIEW: usize = 1000;

/// How many it looks at, and how many of these may come before the last that is taken. Once it has looked at all it may, it
/// gives what it happens to have seen, which need not be the nearest; it gives several times fewer until then.
const LOOKED_AT: i64 = 20_000;
const PASSED_OVER: i64 = 4000;

/// Of how many vectors one at least must be of the collections that are searched: the index knows no collections, and passes
/// over whatever lies between. Below that, reading the signs of the few takes less.
const ONE_OF: i64 = 16;

/// The collections that are searched.
pub(in crate::postgres) struct Within<'a> {
    /// Their numbers.
    pub collections: &'a [i64],
    /// How many vectors they have.
    pub vectors: i64,
}

/// The chunks whose vectors are nearest, with their cosines, if there is an index that can tell.
pub(in crate::postgres) async fn nearest(
    transaction: &Transaction<'_>,
    within: Within<'_>,
    vector: &[f32],
    most: usize,
) -> Result<Option<Vec<(i64, f64)>>, Failure> {
    let Some(asked) = in_words(vector) else {
        return Ok(None);
    };
    let state = row(transaction, sql::STATE, &[]).await?;
    let Some(state) = state.as_ref().map(State::read).transpose()? else {
        return Ok(None);
    };
    let Some(index) = state.usable() else {
        return Ok(None);
    };
    if usize::try_from(index.dimensions) != Ok(vector.len())
        || within.vectors.saturating_mul(ONE_OF) < state.vectors
    {
        return Ok(None);
    }
    let at_once = (most.saturating_mul(IN_VIEW)).clamp(LEAST_IN_VIEW, MOST_IN_VIEW);
    let first = sql::look(at_once, LOOKED_AT);
    let found = async {
        transaction.batch_execute(&first).await?;
        let statement = sql::nearest(&index);
        rows(
            transaction,
            &statement,
            &[&asked, &within.collections, &limit(most)],
        )
        .await
    };
    let found = match found.await {
        Err(failure) if failure.may_pass() => return Err(failure),
        // The extension may have gone this moment.
        Err(_) => Vec::new(),
        Ok(found) => found,
    };
    let wanted = most.min(usize::try_from(within.vectors).unwrap_or(0));
    let last = found.last().map(|row| row.try_get::<_, i64>(2));
    if found.len() < wanted || last.transpose()?.is_some_and(|place| place > PASSED_OVER) {
        transaction.batch_execute(sql::ROLL_BACK).await?;
        return Ok(None);
    }
    let with_cosine = |row: &Row| Ok((row.try_get(0)?, cosine(vector, row.try_get(1)?)));
    let cosines = found
        .iter()
        .map(with_cosine)
        .collect::<Result<_, Failure>>()?;
    Ok(Some(nearest_first(cosines, most)))
}

/// The vector as the extension reads it, as long as it has a direction. It is scaled for half precision.
fn in_words(vector: &[f32]) -> Option<String> {
    let greatest = vector
        .iter()
        .fold(0.0_f32, |most, number| most.max(number.abs()));
    let has_direction = greatest > 0.0 && vector.iter().all(|number| number.is_finite());
    if !has_direction {
        return None;
    }
    let mut words = String::with_capacity(vector.len() * 12);
    for number in vector {
        let sign = if words.is_empty() { '[' } else { ',' };
        // A string takes whatever is written.
        let _ = write!(words, "{sign}{}", number / greatest * 1000.0);
    }
    words.push(']');
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn a_vector_without_a_direction_is_not_asked_for() {
        assert_eq!(in_words(&[0.5, -0.25]).as_deref(), Some("[1000,-500]"));
        for vector in [
            &[][..],
            &[0.0, 0.0],
            &[1.0, f32::NAN],
            &[f32::INFINITY, 1.0],
        ] {
            assert_eq!(in_words(vector), None);
        }
    }
}
