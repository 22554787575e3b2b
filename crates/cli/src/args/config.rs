//! The arguments of `lango config`.

use clap::Subcommand;

/// The actions of `lango config`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango config show --origin\n  lango config set agent.model offline/rules\n  \
                  lango config unset agent.model\n  lango config edit\n  lango config check"
)]
pub enum ConfigCommand {
    /// Show every key with its value
    Show {
        /// Show where each value comes from.
        #[arg(long, conflicts_with = "json")]
        origin: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the value of one key
    Get {
        /// The key, such as agent.model.
        key: String,
        /// Print JSON: the value and where it comes from.
        #[arg(long)]
        json: bool,
    },
    /// Set a key in your configuration file, and leave its comments and order as they are
    Set {
        /// The key, such as agent.model.
        key: String,
        /// The value, as with -c: text, a number, true, or a list such as '["a", "b"]'.
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Change the project's file instead of yours.
        #[arg(long)]
        project: bool,
    },
    /// Remove a key, or a section with everything in it, from your configuration file
    Unset {
        /// The key, such as agent.model.
        key: String,
        /// Change the project's file instead of yours.
        #[arg(long)]
        project: bool,
    },
    /// Open your configuration file in $VISUAL or $EDITOR, and check it afterwards
    Edit {
        /// Edit the project's file instead of yours.
        #[arg(long)]
        project: bool,
    },
    /// Print the path of your configuration file
    Path {
        /// Print that of the project's file instead of yours.
        #[arg(long)]
        project: bool,
    },
    /// Check files, environment and flags, and that the agents can be built
    Check,
    /// Show the project's lango.toml, agents and AGENTS.md, and trust their current content
    Trust {
        /// Revoke the trust.
        #[arg(long)]
        revoke: bool,
        /// Trust what is shown, without asking.
        #[arg(long, conflicts_with = "revoke")]
        yes: bool,
    },
}

impl Default for ConfigCommand {
    fn default() -> Self {
        Self::Show {
            origin: false,
            json: false,
        }
    }
}
