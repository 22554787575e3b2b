//! The arguments of `lango sessions`.

use super::archive::{DeleteArguments, ExportArguments, ImportArguments, VerifyArguments};
use super::mode::ModeArgument;
use clap::Subcommand;

/// The maximum number of entries in a list, unless another one is given.
const LIST_LIMIT: usize = 20;

/// The actions of `lango sessions`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango sessions\n  lango sessions search \"deploy key\"\n  lango sessions show s_1k2m\n  \
                        lango sessions rename s_1k2m \"Deploy to staging\"\n  \
                        lango sessions export --all --output sessions.jsonl"
)]
pub enum SessionsCommand {
    /// List the sessions, most recently used first
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The maximum number of entries.
        #[arg(long, default_value_t = LIST_LIMIT)]
        limit: usize,
    },
    /// Show a session, with the author of every message
    Show {
        /// The id of the session, or its first characters.
        id: String,
        /// Print every event, one JSON object per line.
        #[arg(long)]
        jsonl: bool,
    },
    /// Search the titles and messages of your sessions
    Search {
        /// The text that a title, a question or an answer contains; case does not matter.
        #[arg(required = true)]
        text: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The maximum number of entries.
        #[arg(long, default_value_t = LIST_LIMIT)]
        limit: usize,
    },
    /// Give a session another title
    Rename {
        /// The id of the session, or its first characters.
        id: String,
        /// The title.
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Open a chat in a session
    Resume {
        /// The id of the session, or its first characters.
        id: String,
        #[command(flatten)]
        mode: ModeArgument,
    },
    /// Abandon an interrupted or waiting turn: unfinished calls stay unknown, pending approvals are denied
    Close {
        /// The id of the session, or its first characters.
        id: String,
    },
    /// Export sessions as lines of JSON with hashes that prove their integrity, or as Markdown to read
    Export(ExportArguments),
    /// Import exported sessions
    Import(ImportArguments),
    /// Verify that logs have no gaps, name every author, and are unchanged
    Verify(VerifyArguments),
    /// Delete sessions permanently
    Delete(DeleteArguments),
}

impl Default for SessionsCommand {
    fn default() -> Self {
        Self::List {
            json: false,
            limit: LIST_LIMIT,
        }
    }
}
