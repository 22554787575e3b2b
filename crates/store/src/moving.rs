//! Everything from one database to another, in an order and in pieces that can be interrupted anywhere: how far it is stands
//! in the destination, in the transaction that brought the last piece. At the end every row is compared with the one it came
//! from, and every log is checked by its hashes.

mod transfer;

use crate::archive;
use crate::tables::{Cell, Cells, Copied, Destination, Mark, ROWS_AT_ONCE, TABLES, Table, Tables};
use lango_core::{SessionId, StoreError};
use transfer::{Extent, Transfer};

/// What was moved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moved {
    /// Rows of all tables.
    pub rows: u64,
    /// Sessions.
    pub sessions: u64,
    /// Events.
    pub events: u64,
    /// Sessions whose logs are damaged, as they were before.
    pub damaged: u64,
}

/// What a move is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Rows of this table are copied.
    Copying(&'static str),
    /// They are compared.
    Comparing(&'static str),
    /// Logs are checked.
    Checking,
}

/// How far it is with that: how much is done, of how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What it is at.
    pub doing: Doing,
    /// Done.
    pub done: u64,
    /// In all.
    pub total: u64,
}

/// Why it did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// Somebody is at work in one of the databases.
    #[error("{place} is in use: {sessions} of its sessions are held")]
    InUse {
        /// Which.
        place: String,
        /// How many sessions.
        sessions: usize,
    },
    /// The destination has something in it.
    #[error("{place} is not empty: there are rows in `{table}`")]
    NotEmpty {
        /// Where it is.
        place: String,
        /// A table with rows.
        table: &'static str,
    },
    /// It has part of something else.
    #[error("{place} has part of another move in it, from {source_place}")]
    OtherMove {
        /// Where it is.
        place: String,
        /// Where that comes from.
        source_place: String,
    },
    /// One of them was written to meanwhile.
    #[error("`{table}` is not what was moved: {place} was written to since the move began")]
    Changed {
        /// Which table.
        table: &'static str,
        /// Which of the two.
        place: String,
    },
    /// They are not the same, although neither was written to.
    #[error("`{table}` did not arrive as it left, although neither {from} nor {to} was written to")]
    Differs {
        /// Which table.
        table: &'static str,
        /// Where it comes from.
        from: String,
        /// Where it went.
        to: String,
    },
    /// A database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Hears how far it is.
pub type Seen<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// Moves everything; goes on where an earlier try from the same source was interrupted.
pub async fn move_all(
    source: &dyn Tables,
    target: &dyn Destination,
    seen: Seen<'_>,
) -> Result<Moved, MoveError> {
    for store in [source, target as &dyn Tables] {
        let sessions = store.held().await?;
        if sessions > 0 {
            let place = store.place();
            return Err(MoveError::InUse { place, sessions });
        }
    }
    let mark = begin(source, target).await?;
    let mut transfer = Transfer {
        source,
        target,
        copied: mark.copied,
    };
    if !transfer.copied.is_empty() {
        // Somebody may have been at work since it was interrupted.
        transfer.must_be_as_copied(Extent::SoFar, seen).await?;
    }
    let mut moved = Moved::default();
    for (index, table) in TABLES.iter().enumerate().skip(mark.table) {
        let after = match index == mark.table {
            true => mark.after.clone(),
            false => None,
        };
        transfer.copy(index, table, after, seen).await?;
    }
    transfer.copied.resize(TABLES.len(), Copied::default());
    let mut numbers = Vec::new();
    for table in TABLES {
        if let Some(number) = source.last_number(table).await? {
            numbers.push((table, number));
        }
    }
    target.go_on_from(numbers).await?;
    for table in TABLES {
        let rows = transfer.compare(table, seen).await?;
        moved.rows += rows;
        match table.name {
            "sessions" => moved.sessions = rows,
            "events" => moved.events = rows,
            _ => {}
        }
    }
    check_logs(target, &mut moved, seen).await?;
    target.arrived().await?;
    Ok(moved)
}

/// Where to go on from: the beginning, in a destination that is empty, or where an earlier try was interrupted.
async fn begin(source: &dyn Tables, target: &dyn Destination) -> Result<Mark, MoveError> {
    let from = source.place();
    match target.mark().await? {
        Some(mark) if mark.source == from => return Ok(mark),
        Some(mark) => {
            return Err(MoveError::OtherMove {
                place: target.place(),
                source_place: mark.source,
            });
        }
        None => {}
    }
    for table in TABLES {
        if !target.page(table, None, 1).await?.is_empty() {
            let place = target.place();
            let table = table.name;
            return Err(MoveError::NotEmpty { place, table });
        }
    }
    Ok(Mark {
        source: from,
        table: 0,
        after: None,
        copied: Vec::new(),
    })
}

/// Checks the logs where they are now.
async fn check_logs(
    target: &dyn Destination,
    moved: &mut Moved,
    seen: Seen<'_>,
) -> Result<(), MoveError> {
    let Some(sessions) = TABLES.iter().find(|table| table.name == "sessions") else {
        return Ok(());
    };
    let (mut done, mut after) = (0, None);
    loop {
        let rows = target.page(sessions, after.take(), ROWS_AT_ONCE).await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = Some(key_of(sessions, last));
        for row in &rows {
            let Some(Cell::Text(id)) = row.first() else {
                continue;
            };
            let id = SessionId::from(id.as_str());
            match archive::verify(target, &id, &mut |_| ()).await {
                Err(StoreError::Damaged { .. }) => moved.damaged += 1,
                // One that is hidden has no log that anybody could read.
                Ok(_) | Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            done += 1;
            seen(Progress {
                doing: Doing::Checking,
                done,
                total: moved.sessions,
            });
        }
    }
}

fn key_of(table: &Table, row: &[Cell]) -> Cells {
    row.iter().take(table.key).cloned().collect()
}
