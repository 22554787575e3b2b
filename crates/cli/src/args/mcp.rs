//! The arguments of `lango mcp`.

use clap::{ArgGroup, Args, Subcommand};
use std::path::PathBuf;

/// The actions of `lango mcp`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango mcp add git --agent operator -- mcp-server-git\n  \
                  lango mcp\n  lango mcp test git\n  lango mcp trust git\n  lango mcp login tracker"
)]
pub enum McpCommand {
    /// Add a server to your configuration file
    Add(AddArguments),
    /// Remove a server from your configuration file
    Remove {
        /// The server.
        id: String,
    },
    /// List the servers, the agents that own their tools, and changes; starts nothing
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Connect to servers and show the result
    Test {
        /// The server; all if not given.
        id: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Log in to a remote server; you grant access in a browser on this machine
    Login {
        /// The server.
        id: String,
        /// Scopes to request in addition to those that the server names.
        #[arg(long, value_name = "SCOPES")]
        scope: Option<String>,
    },
    /// Delete the stored access of a login
    Logout {
        /// The server.
        id: String,
    },
    /// Show changed tools and program files that agents could write, and accept their current content
    Trust {
        /// The server.
        id: String,
        /// Accept everything that is shown, without asking.
        #[arg(long)]
        yes: bool,
        /// Accept only the version with this hash (or its first 12 digits), without asking. Can be repeated.
        #[arg(long, value_name = "HASH", conflicts_with = "yes")]
        hash: Vec<String>,
    },
}

impl Default for McpCommand {
    fn default() -> Self {
        Self::List { json: false }
    }
}

/// Arguments of `lango mcp add`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lango mcp add git --agent operator -- mcp-server-git\n  \
                  lango mcp add time --network '*' -- uvx mcp-server-time==2026.10.19\n  \
                  lango mcp add js --read ~/servers -- node ~/servers/index.js\n  \
                  lango mcp add api --env K=secret:K --network a.example -- api-mcp\n  \
                  lango mcp add tracker --url https://tracker.example/mcp\n  \
                  lango mcp add api --url https://a.example/mcp --token-env secret:API\n\n\
                  `{workspace}` in the command stands for the workspace. `lango config set mcp.servers.ID.KEY` changes other keys."
)]
#[command(group = ArgGroup::new("target").required(true).multiple(false).args(["url", "command"]))]
pub struct AddArguments {
    /// A name for the server: up to 32 letters, digits, `-` and `_`.
    pub id: String,

    /// The address of a remote server.
    #[arg(long)]
    pub url: Option<String>,

    /// A variable of the program: NAME passes yours on, NAME=VALUE sets one, NAME=secret:X uses a secret of the vault.
    /// Can be repeated.
    #[arg(long, value_name = "NAME[=VALUE]", conflicts_with = "url")]
    pub env: Vec<String>,

    /// A host that the program may contact, or `*` for all; none if not given. Can be repeated.
    #[arg(long, value_name = "HOST", conflicts_with = "url")]
    pub network: Vec<String>,

    /// A file or folder that the program may read besides the system. Can be repeated.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub read: Vec<PathBuf>,

    /// The agent that gets the tools; `operator` if not given.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// The variable with the bearer token for the address, or secret:NAME.
    #[arg(long, value_name = "VARIABLE", conflicts_with = "command")]
    pub token_env: Option<String>,

    /// The same as --token-env, as a header: `Authorization: Bearer $VARIABLE`, or secret:NAME instead of $VARIABLE.
    #[arg(long, value_name = "HEADER", conflicts_with_all = ["command", "token_env"])]
    pub header: Option<String>,

    /// Replace an existing server of this name.
    #[arg(long)]
    pub force: bool,

    /// The program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
