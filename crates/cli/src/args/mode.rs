//! The permission mode on the command line.

use super::{ApprovalsCommand, Arguments, Command, SessionsCommand};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lango::app::Failure;
use lango_core::PermissionMode;

/// The permission mode of a command that runs turns.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ModeArgument {
    /// What the agents may do: ask before changes, run ordinary edits of files here without asking, only read, or read
    /// and answer with a plan. `ask` if not given.
    #[arg(long, value_name = "MODE", value_parser = parser())]
    pub mode: Option<PermissionMode>,
}

fn parser() -> impl TypedValueParser<Value = PermissionMode> {
    PossibleValuesParser::new(PermissionMode::ALL.map(PermissionMode::name))
        .try_map(|name| name.parse::<PermissionMode>())
}

impl Arguments {
    /// Returns the permission mode. Fails if the command runs no turns, or always asks, but got a mode; an ignored mode
    /// would be worse than an error.
    pub fn permission_mode(&self) -> Result<PermissionMode, Failure> {
        let own = match &self.command {
            None => Some(ModeArgument::default()),
            Some(Command::Run(arguments)) => Some(arguments.mode),
            Some(Command::Chat(arguments)) => Some(arguments.mode),
            Some(Command::Resume(arguments)) => Some(arguments.mode),
            Some(Command::Sessions {
                command: Some(SessionsCommand::Resume { mode, .. }),
            }) => Some(*mode),
            Some(Command::Approvals {
                command: Some(ApprovalsCommand::Answer { mode, .. }),
            }) => Some(*mode),
            Some(_) => None,
        };
        match (self.mode.mode, own.map(|own| own.mode)) {
            (None, mode) => Ok(mode.flatten().unwrap_or_default()),
            (Some(mode), Some(None)) => Ok(mode),
            (Some(_), Some(Some(_))) => {
                Err(Failure::usage("--mode is given twice").next("give it once"))
            }
            (Some(_), None) => Err(Failure::usage("this command has no permission mode")
                .next("give --mode to lango, lango run, lango resume or lango approvals answer")),
        }
    }
}
