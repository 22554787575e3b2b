//! The arguments of `lango run`.

use super::ModeArgument;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `lango run`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:\n  lango run \"what files are here?\"\n  \
                        cat error.log | lango run \"what broke?\" > answer.md\n  \
                        lango run --attach screen.png \"what is wrong here?\"\n  \
                        lango run --json \"hello\"\n  \
                        lango run --mode plan \"rename the module\"\n  \
                        lango run --schema files.json \"which files are here?\" | jq .files\n  \
                        lango run --session s_1k2m \"and then?\"\n  \
                        lango run --continue \"and then?\"")]
pub struct RunArguments {
    /// The question; `-` or nothing reads it from standard input. Piped input is added to it.
    pub prompt: Vec<String>,

    /// Attach a file: an image (PNG, JPEG, GIF, WebP; 5 MB), or text, HTML or PDF (10 MB); can be repeated.
    #[arg(short, long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,

    /// Print one JSON object with the answer, the outcome and the counts.
    #[arg(long, conflicts_with = "jsonl")]
    pub json: bool,

    /// Print the events as they are stored, one JSON object per line.
    #[arg(long)]
    pub jsonl: bool,

    /// Answer with JSON that satisfies the JSON schema in this file; exit 1 if the model cannot.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,

    /// Continue a session, given by its id or its first characters.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,

    /// Continue the session that was used last in this folder.
    #[arg(long = "continue", conflicts_with = "session")]
    pub continues: bool,

    /// Store nothing.
    #[arg(long, conflicts_with_all = ["session", "continues"])]
    pub ephemeral: bool,

    #[command(flatten)]
    pub mode: ModeArgument,

    /// Print no progress on stderr.
    #[arg(short, long)]
    pub quiet: bool,
}
