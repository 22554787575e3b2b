//! The arguments of the commands that export, import, verify, delete, back up and move stored data.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// A selection of sessions.
#[derive(Debug, Args)]
#[group(id = "which", required = true, multiple = false)]
pub struct SessionSelection {
    /// The ids of the sessions, or their first characters.
    #[arg(value_name = "ID", group = "which", num_args = 1..)]
    pub ids: Vec<String>,

    /// All your sessions, and those of the server's callers.
    #[arg(long, group = "which")]
    pub all: bool,
}

/// Arguments of `lango sessions export`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lango sessions export s_1k2m > session.jsonl\n  \
                  lango sessions export --all --output sessions.jsonl\n  \
                  lango sessions export s_1k2m --markdown --output session.md\n\n\
                  The file has one line per session, then one per event with its author and hash, so that it can be verified on \
                  its own. It does not contain memory or the library; `lango store backup` copies everything."
)]
pub struct ExportArguments {
    #[command(flatten)]
    pub selection: SessionSelection,

    /// The format; only jsonl can be imported and verified.
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    pub format: ExportFormat,

    /// The same as --format markdown.
    #[arg(long, conflicts_with = "format")]
    pub markdown: bool,

    /// Write to this file instead of stdout. It must not exist yet, and appears when it is complete.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The format of exported sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object per line, with hashes.
    Jsonl,
    /// A transcript to read.
    Markdown,
}

/// Arguments of `lango sessions import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lango sessions import sessions.jsonl\n  \
                  ssh other lango sessions export --all | lango sessions import -\n\n\
                  Every line is checked; a session is imported completely or not at all. Its grants are left out, so lango asks again.")]
pub struct ImportArguments {
    /// The file; `-` is standard input.
    pub file: PathBuf,

    /// Leave existing sessions with a different log unchanged, instead of stopping.
    #[arg(long)]
    pub skip_existing: bool,
}

/// Arguments of `lango sessions verify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lango sessions verify s_1k2m\n  lango sessions verify --all")]
pub struct VerifyArguments {
    #[command(flatten)]
    pub selection: SessionSelection,
}

/// Arguments of `lango sessions delete`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lango sessions delete s_1k2m\n  lango sessions delete --older-than 30d\n  \
                  lango sessions delete --expired --yes\n\n\
                  Deletes the conversation permanently, with its memories and the documents that only it could search. A session with a \
                  running turn is refused; one with an unfinished turn is deleted only by its id, never because of its age."
)]
#[group(skip)]
#[command(group = ArgGroup::new("selection").required(true).multiple(false))]
pub struct DeleteArguments {
    /// The ids of the sessions, or their first characters.
    #[arg(value_name = "ID", group = "selection", num_args = 1..)]
    pub ids: Vec<String>,

    /// All sessions that were not used for this long, such as 30d, and tasks of callers that are as old.
    #[arg(long, value_name = "TIME", group = "selection")]
    pub older_than: Option<Age>,

    /// All sessions and tasks that are older than session.ttl.
    #[arg(long, group = "selection")]
    pub expired: bool,

    /// Delete without asking.
    #[arg(long)]
    pub yes: bool,
}

/// The actions of `lango store`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango store backup lango-backup.db\n  lango store restore lango-backup.db\n  lango store compact\n  \
                        lango store move sqlite:lango.db postgres://lango@db.example/lango"
)]
pub enum StoreCommand {
    /// Copy the database of session.store to a file, also while lango runs
    Backup {
        /// The file, which must not exist yet.
        to: PathBuf,
    },
    /// Restore the database from a backup, and ask about work that was in flight instead of repeating it
    Restore {
        /// The file of `lango store backup`. Without it, lango only marks the work in flight, in a database that was
        /// restored by other means such as pg_restore.
        from: Option<PathBuf>,
    },
    /// Rewrite the database file, so that it contains no deleted data
    Compact,
    /// Copy everything from one database to another; resumes an interrupted move
    Move {
        /// The source: `sqlite:PATH` or `postgres://user@host/database`.
        from: String,
        /// The target: a database that is empty or does not exist yet.
        to: String,
    },
}

/// A duration of up to a century, given on the command line.
#[derive(Debug, Clone, Copy)]
pub struct Age(pub std::time::Duration);

impl std::str::FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        lango_config::age(text)
            .map(Self)
            .map_err(|expected| format!("must be {expected}"))
    }
}
