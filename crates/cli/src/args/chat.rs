//! The arguments of `lango chat` and `lango resume`.

use super::mode::ModeArgument;
use clap::Args;

/// Arguments of `lango chat`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:\n  lango chat\n  lango chat --continue")]
pub struct ChatArguments {
    /// Continue the session that was used last in this folder.
    #[arg(long = "continue")]
    pub continues: bool,

    #[command(flatten)]
    pub mode: ModeArgument,
}

/// Arguments of `lango resume`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  lango resume\n  lango resume s_1k2m")]
pub struct ResumeArguments {
    /// The id of the session, or its first characters.
    pub id: Option<String>,

    #[command(flatten)]
    pub mode: ModeArgument,
}
