//! The arguments of `lango secrets`. None of them is a value, because other users of the machine can read command
//! lines.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// The actions of `lango secrets`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango secrets set OPENAI_API_KEY     type the value; it is not shown\n  \
                  pass show openai | lango secrets set OPENAI_API_KEY\n  \
                  lango secrets bind GITHUB_TOKEN --for github     for commands\n  \
                  lango secrets\n  \
                  lango secrets unlock                 for 15 minutes in this login session\n\n\
                  The first `set` creates the vault. Scripts and servers unlock it with LANGO_VAULT_PASSPHRASE or vault.keyFile;\n\
                  LANGO_SERVER_VAULT_PASSPHRASE is for the vault of `lango secrets --server`."
)]
pub enum SecretsCommand {
    /// Create the vault and choose how to unlock it; by a passphrase if not given
    Init(MethodArguments),
    /// Store a secret: type it, or pipe it to standard input (one trailing line end, \n or \r\n, is removed)
    Set {
        /// The name, such as OPENAI_API_KEY.
        name: String,
        /// When it expires: after a time such as 90d, at the end of a day (UTC) such as 2027-01-31, or never.
        #[arg(long, value_name = "WHEN")]
        expires: Option<String>,
        /// A value given as an argument, which is refused.
        #[arg(hide = true)]
        extra: Vec<OsString>,
    },
    /// List the secrets, never their values
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one secret with its bindings, never its value
    Describe {
        /// The secret.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Allow a secret to be used in a place
    #[command(
        after_help = "Examples:\n  lango secrets bind GITHUB_TOKEN --for github\n  \
                      lango secrets bind GITHUB_TOKEN --host api.github.com --env GH_TOKEN\n  \
                      lango secrets bind SENTRY --tool mcp:sentry --host sentry.example.com\n  \
                      lango secrets bind AWS_KEY --program aws --env AWS_SECRET_ACCESS_KEY\n  \
                      lango secrets bind SHOP --tool browser_act --field text --host example.com\n\n\
                      With --host neither the agent nor the command sees the value: the variable contains a placeholder,\n\
                      which lango replaces by the value in requests to that host."
    )]
    Bind(BindArguments),
    /// Remove a place where a secret may be used
    Unbind {
        /// The secret.
        name: String,
        /// The number of the binding, as shown by `describe`. Asks if not given and there are several.
        #[arg(value_parser = parse_number)]
        number: Option<usize>,
        /// Remove all of them.
        #[arg(long, conflicts_with = "number")]
        all: bool,
    },
    /// Replace the value of a secret (typed, or piped in as with `set`), or the vault's master key
    Rotate {
        /// The secret.
        #[arg(conflicts_with = "master")]
        name: Option<String>,
        /// Replace the master key; every unlock method must be available.
        #[arg(long)]
        master: bool,
        /// With --master: remove this unlock method instead. Can be repeated.
        #[arg(long, value_name = "ID", requires = "master", conflicts_with = "name")]
        without: Vec<u16>,
        /// When the new value expires: after a time such as 90d, at the end of a day (UTC) such as 2027-01-31, or
        /// never. If not given, it has the same lifetime as the previous value.
        #[arg(long, value_name = "WHEN", conflicts_with = "master")]
        expires: Option<String>,
        /// A value given as an argument, which is refused.
        #[arg(hide = true, conflicts_with = "master")]
        extra: Vec<OsString>,
    },
    /// Delete a secret
    Rm {
        /// The secret.
        name: String,
        /// Also delete the key of a wallet, which loses everything in the wallet.
        #[arg(long)]
        yes: bool,
    },
    /// Unlock the vault for 15 minutes in this login session, for all commands started in that time
    Unlock,
    /// End an unlock; variables and key files still unlock the vault
    Lock,
    /// Store keys from environment variables, and from lango's own plain files
    ImportEnv {
        /// The variables to import; by default all that the configuration names, and lango's own plain key files.
        names: Vec<String>,
    },
    /// List, add or remove the vault's unlock methods
    Methods {
        /// The action; list if none is given.
        #[command(subcommand)]
        command: Option<MethodsCommand>,
    },
    /// Show the audit log, newest first
    Log {
        /// The maximum number of entries.
        #[arg(long, default_value_t = 20, value_parser = parse_limit)]
        limit: usize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Delete the vault with all its secrets
    Destroy {
        /// Confirm; this cannot be undone.
        #[arg(long)]
        yes: bool,
    },
}

impl Default for SecretsCommand {
    fn default() -> Self {
        Self::List { json: false }
    }
}

/// Arguments of `lango secrets bind`.
#[derive(Debug, Args)]
pub struct BindArguments {
    /// The secret.
    pub name: String,

    /// The only host that receives the value.
    #[arg(long)]
    pub host: Option<String>,

    /// The header that carries it; authorization if not given.
    #[arg(long, requires = "host")]
    pub header: Option<String>,

    /// The environment variable for programs; the name of the secret if not given.
    #[arg(long, value_name = "VARIABLE")]
    pub env: Option<String>,

    /// The user of the secret: exec for commands, mcp:ID for the program of an MCP server; with --field, mcp:ID/TOOL
    /// or browser_act.
    #[arg(long)]
    pub tool: Option<String>,

    /// A program that may see the value itself, for programs that sign with it.
    #[arg(long, conflicts_with_all = ["host", "header"])]
    pub program: Option<String>,

    /// The argument of the tool that may be secret:NAME.
    #[arg(long, requires = "tool", conflicts_with_all = ["program", "header", "env"])]
    pub field: Option<String>,

    /// The hosts, headers and variables of a well-known service: github, gitlab or npm.
    #[arg(long = "for", value_name = "SERVICE", conflicts_with_all = ["host", "header", "env", "program", "field"])]
    pub service: Option<String>,
}

/// Which unlock methods to add.
#[derive(Debug, Args)]
pub struct MethodArguments {
    /// A passphrase: typed, or from LANGO_VAULT_PASSPHRASE for a new vault, LANGO_NEW_VAULT_PASSPHRASE for an
    /// existing one.
    #[arg(long)]
    pub passphrase: bool,

    /// A new key file; set vault.keyFile to it.
    #[arg(long, value_name = "PATH")]
    pub key_file: Option<PathBuf>,

    /// A key in the keyring of this desktop session.
    #[arg(long)]
    pub keyring: bool,
}

/// The actions of `lango secrets methods`.
#[derive(Debug, Subcommand)]
pub enum MethodsCommand {
    /// List the methods
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Add methods to the existing ones
    Add(MethodArguments),
    /// Remove a method
    Remove {
        /// The number, as shown in the list.
        id: u16,
        /// Remove it even if no other method is known to work.
        #[arg(long)]
        yes: bool,
    },
}

/// Parses the number of a binding.
fn parse_number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number.ok_or_else(|| {
        "it is not the number of a binding; run `lango secrets describe` to see the bindings"
            .to_owned()
    })
}

/// Parses the number of entries to show.
pub(super) fn parse_limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(limit) => Ok(limit),
        Err(_) => Err("it is not a whole number".to_owned()),
    }
}
