//! The arguments of `lango undo`.

use clap::Args;

/// Arguments of `lango undo`.
#[derive(Debug, Args)]
pub struct UndoArguments {
    /// The turn, by its id or the first characters of it; the last turn that changed files in this folder if none is
    /// given.
    pub turn: Option<String>,

    /// List the turns that changed files in this folder, newest first.
    #[arg(long, conflicts_with_all = ["turn", "diff", "partial", "yes"])]
    pub list: bool,

    /// Show how the files differ from their originals, and change nothing.
    #[arg(long, conflicts_with_all = ["partial", "yes"])]
    pub diff: bool,

    /// Restore what can be restored, even if a part of the turn cannot be undone.
    #[arg(long)]
    pub partial: bool,

    /// Do not ask for confirmation.
    #[arg(long, short)]
    pub yes: bool,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
