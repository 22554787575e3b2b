//! Nearness by an index of the server's, where the database has the extension pgvector (`vector`) in version 0.8 or newer.
//!
//! Nothing else changes: vectors are stored as they are everywhere, and signs in memory are still what a search likes best.
//! The index is for the search that would have to read the signs of a large collection first: that of a process that has
//! just started, or after a write.
//!
//! It is an index over what a function of ours makes of the stored bytes, so that the server itself keeps it in step,
//! whoever writes, and that it goes with the extension when that is dropped. A byte is exact in the extension's half
//! precision, which takes half the room and allows 4,000 numbers; more than those are compared as everywhere. It holds the
//! vectors of one length alone: those of another maker neither fail nor come up.
//!
//! When it is made: adding to it takes many times as long as adding without, and building it at once a tenth of that. So it
//! is not made before there are more vectors than a search would read the signs of; then at the next start if they are
//! not too many, and otherwise by `lango store compact`, beside whatever others do. Until then, and with any other version
//! or none, all is as it is without.

mod asking;
mod making;
#[cfg(test)]
mod plans;
mod statements;

pub(super) use asking::{Within, nearest};
pub(super) use making::{make, prepare};

use super::failure::Failure;
use crate::library::VectorSearch;
use statements::STATE;
use tokio_postgres::{GenericClient, Row};

/// The oldest version that goes on looking when a filter leaves too few.
const OLDEST: (u32, u32) = (0, 8);

/// The longest vectors that it indexes.
const MOST_DIMENSIONS: i64 = 4000;

/// How things stand in the database.
#[derive(Debug)]
pub(super) struct State {
    /// The version of the extension that is installed, and the schema it is in, quoted.
    installed: Option<(String, String)>,
    /// How many numbers the vectors have, if there is a maker.
    dimensions: Option<i64>,
    /// How many vectors there are.
    vectors: i64,
    /// Whether the index can be used, if there is one.
    index: Option<bool>,
    /// Whether indexes are ours to make.
    is_ours: bool,
    /// The version that could be installed, and whether we may.
    available: Option<(String, bool)>,
}

/// Where the index is, in words of SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Index {
    dimensions: i64,
    /// The extension's schema, quoted.
    schema: String,
}

impl State {
    /// As it is now.
    async fn of(client: &impl GenericClient) -> Result<Self, Failure> {
        Self::read(&client.query_one(STATE, &[]).await?)
    }

    fn read(row: &Row) -> Result<Self, Failure> {
        let pair = |at: usize| {
            let both = (row.try_get(at)?, row.try_get(at + 1)?);
            Ok::<_, Failure>(match both {
                (Some(one), Some(other)) => Some((one, other)),
                _ => None,
            })
        };
        Ok(Self {
            installed: pair(0)?,
            dimensions: row.try_get(2)?,
            vectors: row.try_get(3)?,
            index: row.try_get(4)?,
            is_ours: row.try_get(5)?,
            available: available(row)?,
        })
    }

    /// The index that there can be here.
    fn possible(&self) -> Option<Index> {
        let (version, schema) = self.installed.as_ref()?;
        let dimensions = self.dimensions?;
        let fits = is_new_enough(version) && (1..=MOST_DIMENSIONS).contains(&dimensions);
        fits.then(|| Index {
            dimensions,
            schema: schema.clone(),
        })
    }

    /// The index that is there.
    fn usable(&self) -> Option<Index> {
        self.possible().filter(|_| self.index == Some(true))
    }

    /// Whether the extension can be installed, and is wanted.
    fn can_be_installed(&self) -> bool {
        let available = self.available.as_ref();
        available.is_some_and(|(version, may)| *may && is_new_enough(version))
    }

    /// Whether there are more vectors than this.
    fn is_of_use(&self, signs_read: u64) -> bool {
        u64::try_from(self.vectors).is_ok_and(|vectors| vectors > signs_read)
    }

    /// In a person's words, where an index is of use beyond so many vectors.
    fn described(&self, signs_read: u64) -> VectorSearch {
        let plain = |why: String| VectorSearch::Plain { why: Some(why) };
        match (&self.installed, &self.available) {
            (None, None) => plain("pgvector is not installed on this server".to_owned()),
            (None, Some(_)) => plain("pgvector is not installed in this database".to_owned()),
            (Some((version, _)), _) if !is_new_enough(version) => {
                let (major, minor) = OLDEST;
                plain(format!("pgvector {version} is older than {major}.{minor}"))
            }
            (Some((version, _)), _) if self.usable().is_some() => VectorSearch::Indexed {
                by: format!("pgvector {version}"),
            },
            (Some((version, _)), _) => plain(match self.dimensions {
                Some(numbers) if numbers > MOST_DIMENSIONS => format!(
                    "pgvector indexes {MOST_DIMENSIONS} numbers at most, and they have {numbers}"
                ),
                _ if !self.is_of_use(signs_read) => {
                    format!("pgvector {version} is of use from {signs_read} vectors on")
                }
                _ if !self.is_ours => {
                    "their table is not ours, so that no index can be made for pgvector".to_owned()
                }
                _ => "pgvector's index is not made yet: `lango store compact` does that".to_owned(),
            }),
        }
    }
}

/// How the nearest vectors are found.
pub(super) async fn described(
    client: &impl GenericClient,
    signs_read: u64,
) -> Result<VectorSearch, Failure> {
    Ok(State::of(client).await?.described(signs_read))
}

fn available(row: &Row) -> Result<Option<(String, bool)>, Failure> {
    let version: Option<String> = row.try_get(6)?;
    let may = row.try_get(7)?;
    Ok(version.map(|version| (version, may)))
}

/// Whether a version such as `0.8.5` will do.
fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= OLDEST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn a_version_is_compared_by_its_numbers() {
        for version in ["0.8.0", "0.8.5", "0.10.0", "1.0", "0.8-dev"] {
            assert!(is_new_enough(version), "{version}");
        }
        for version in ["0.7.4", "0.5.1", "", "eight", "0"] {
            assert!(!is_new_enough(version), "{version}");
        }
    }
}
