//! The arguments of the commands that keep, move and delete what is stored.

use clap::{ArgGroup, Args, Subcommand};
use std::path::PathBuf;

/// Which sessions are meant.
#[derive(Debug, Args)]
#[group(id = "which", required = true, multiple = false)]
pub struct WhichSessions {
    /// The sessions; the beginning of an id is enough.
    #[arg(value_name = "ID", group = "which", num_args = 1..)]
    pub ids: Vec<String>,

    /// All of yours, and those of the server's callers.
    #[arg(long, group = "which")]
    pub all: bool,
}

/// Arguments of `lango sessions export`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lango sessions export s_1k2m > session.jsonl\n  \
                  lango sessions export --all --output sessions.jsonl\n\n\
                  One line for a session, then one for each event with its author and its hash, so that the file alone tells \
                  whether it is whole. Memory and the library are not in it: `lango store backup` copies everything."
)]
pub struct ExportArguments {
    /// Which.
    #[command(flatten)]
    pub which: WhichSessions,

    /// Into this file, which must not be there yet, instead of stdout. It appears when it is whole.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `lango sessions import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lango sessions import sessions.jsonl\n  \
                  ssh other lango sessions export --all | lango sessions import -\n\n\
                  Every line is checked; a session comes in whole or not at all. What was granted in it for calls to come is asked for again.")]
pub struct ImportArguments {
    /// The file; `-` is standard input.
    pub file: PathBuf,

    /// Leave sessions as they are that are here already with another log, instead of stopping there.
    #[arg(long)]
    pub skip_existing: bool,
}

/// Arguments of `lango sessions verify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lango sessions verify s_1k2m\n  lango sessions verify --all")]
pub struct VerifyArguments {
    /// Which.
    #[command(flatten)]
    pub which: WhichSessions,
}

/// Arguments of `lango sessions delete`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lango sessions delete s_1k2m\n  lango sessions delete --older-than 30d\n  \
                  lango sessions delete --expired --yes\n\n\
                  What was said is gone for good, with what was remembered of it and what only it could search. A session in which a \
                  turn runs is refused; one with an open turn is deleted by its id alone, never for its age."
)]
#[group(skip)]
#[command(group = ArgGroup::new("whose").required(true).multiple(false))]
pub struct DeleteArguments {
    /// The sessions; the beginning of an id is enough.
    #[arg(value_name = "ID", group = "whose", num_args = 1..)]
    pub ids: Vec<String>,

    /// All that were not used for this long, such as 30d, and tasks of callers that are as old.
    #[arg(long, value_name = "TIME", group = "whose")]
    pub older_than: Option<Age>,

    /// The same for session.ttl.
    #[arg(long, group = "whose")]
    pub expired: bool,

    /// Without asking.
    #[arg(long)]
    pub yes: bool,
}

/// What can be done with the database as a whole.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango store backup lango-backup.db\n  lango store restore lango-backup.db\n  lango store compact\n  \
                        lango store move sqlite:lango.db postgres://lango@db.example/lango"
)]
pub enum StoreCommand {
    /// Copy the database of session.store to a file, while lango runs
    Backup {
        /// The file, which must not be there yet.
        to: PathBuf,
    },
    /// Restore the database from a backup, and ask about work that was in flight instead of repeating it
    Restore {
        /// The file of `lango store backup`. Without it, what is in flight is marked in a database that was restored by other
        /// means, such as pg_restore.
        from: Option<PathBuf>,
    },
    /// Write the database anew, so that nothing of what was deleted is left in its file
    Compact,
    /// Copy everything from one database to another; interrupted, it goes on where it was
    Move {
        /// Where everything is: `sqlite:PATH` or `postgres://user@host/database`.
        from: String,
        /// Where it is to go: a database that is empty or not there yet.
        to: String,
    },
}

/// A length of time on the command line, of days or years.
#[derive(Debug, Clone, Copy)]
pub struct Age(pub std::time::Duration);

impl std::str::FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        crate::config::age(text)
            .map(Self)
            .map_err(|expected| format!("must be {expected}"))
    }
}
