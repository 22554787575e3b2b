//! The arguments of `lango memory`.

use clap::{ArgGroup, Subcommand};

/// The maximum number of entries in a list, unless another one is given.
const LIST_LIMIT: usize = 50;

/// The actions of `lango memory`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango memory\n  lango memory search tea\n  lango memory forget m_3\n  lango memory forget --all -y"
)]
pub enum MemoryCommand {
    /// List your memories, newest first: what you asked to save, and what was observed in sessions
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The maximum number of entries.
        #[arg(long, default_value_t = LIST_LIMIT)]
        limit: usize,
    },
    /// Search your memories for words
    Search {
        /// The words; a memory must contain the start of each.
        #[arg(required = true)]
        text: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The maximum number of entries.
        #[arg(long, default_value_t = LIST_LIMIT)]
        limit: usize,
    },
    /// Forget memories permanently; the logs of the sessions stay as they are
    #[command(group = ArgGroup::new("which").required(true).multiple(false).args(["ids", "all"]))]
    Forget {
        /// The ids, as shown in the list.
        #[arg(value_name = "ID")]
        ids: Vec<String>,
        /// All your memories.
        #[arg(long)]
        all: bool,
        /// Do not ask for confirmation.
        #[arg(long, short)]
        yes: bool,
    },
}

impl Default for MemoryCommand {
    fn default() -> Self {
        Self::List {
            json: false,
            limit: LIST_LIMIT,
        }
    }
}
