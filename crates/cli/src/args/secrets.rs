//! The arguments of `lango secrets`. None of them is a value: what is on a command line, other users of the machine can read.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// What can be done with secrets.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango secrets set OPENAI_API_KEY     type the value; it is not shown\n  \
                  pass show openai | lango secrets set OPENAI_API_KEY\n  \
                  lango secrets bind GITHUB_TOKEN --for github     for commands\n  \
                  lango secrets list\n  \
                  lango secrets unlock                 for 15 minutes in this login session\n\n\
                  The first `set` makes the vault. Scripts and servers unlock it with LANGO_VAULT_PASSPHRASE or vault.keyFile;\n\
                  LANGO_SERVER_VAULT_PASSPHRASE is for the vault of `lango secrets --server`."
)]
pub enum SecretsCommand {
    /// Make the vault and choose how it is unlocked; a passphrase if nothing is said
    Init(MethodArguments),
    /// Store a secret: type it, or pipe it to standard input (one line end after it, \n or \r\n, is taken off)
    Set {
        /// Its name, such as OPENAI_API_KEY.
        name: String,
        /// How long it is used: a time such as 90d, the last day (UTC) such as 2027-01-31, or never to expire.
        #[arg(long, value_name = "WHEN")]
        expires: Option<String>,
        /// What would be a value; it is refused.
        #[arg(hide = true)]
        extra: Vec<OsString>,
    },
    /// The secrets, never their values
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// One secret with its bindings, never its value
    Describe {
        /// The secret.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Allow a place where the value of a secret may be used
    #[command(
        after_help = "Examples:\n  lango secrets bind GITHUB_TOKEN --for github\n  \
                      lango secrets bind GITHUB_TOKEN --host api.github.com --env GH_TOKEN\n  \
                      lango secrets bind SENTRY --tool mcp:sentry --host sentry.example.com\n  \
                      lango secrets bind AWS_KEY --program aws --env AWS_SECRET_ACCESS_KEY\n  \
                      lango secrets bind SHOP --tool browser_act --field text --host example.com\n\n\
                      With --host neither the agent nor the command sees the value: the command finds a placeholder in the\n\
                      variable, and lango puts the value in its place on the way to that host."
    )]
    Bind(BindArguments),
    /// Remove a place where the value of a secret may be used
    Unbind {
        /// The secret.
        name: String,
        /// The number of the binding, as `describe` shows it. Without one you are asked, if there are several.
        #[arg(value_parser = parse_number)]
        number: Option<usize>,
        /// Remove all of them.
        #[arg(long, conflicts_with = "number")]
        all: bool,
    },
    /// Give a secret a new value (typed, or piped in as with `set`), or the vault a new master key
    Rotate {
        /// The secret.
        #[arg(conflicts_with = "master")]
        name: Option<String>,
        /// Replace the master key; every unlock method must be at hand.
        #[arg(long)]
        master: bool,
        /// With --master: remove this unlock method instead. May be repeated.
        #[arg(long, value_name = "ID", requires = "master", conflicts_with = "name")]
        without: Vec<u16>,
        /// How long the new value is used: a time such as 90d, the last day (UTC) such as 2027-01-31, or never to expire. If
        /// nothing is said it lives as long as the value before did.
        #[arg(long, value_name = "WHEN", conflicts_with = "master")]
        expires: Option<String>,
        /// What would be a value; it is refused.
        #[arg(hide = true, conflicts_with = "master")]
        extra: Vec<OsString>,
    },
    /// Delete a secret
    Rm {
        /// The secret.
        name: String,
        /// Also the key of a wallet, with which all that the wallet has is lost.
        #[arg(long)]
        yes: bool,
    },
    /// Unlock the vault for 15 minutes in this login session: for all commands that start within that time
    Unlock,
    /// End an unlock; a variable or a key file that unlocks the vault goes on doing so
    Lock,
    /// Store keys that are in environment variables or in plain files of lango's
    ImportEnv {
        /// The variables to import; by default all that the configuration names, and lango's own plain key files.
        names: Vec<String>,
    },
    /// How the vault can be unlocked
    Methods {
        /// What to do; the list if nothing is said.
        #[command(subcommand)]
        command: Option<MethodsCommand>,
    },
    /// What was done with the vault, the latest first
    Log {
        /// How many entries at most.
        #[arg(long, default_value_t = 20, value_parser = parse_limit)]
        limit: usize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Delete the vault with all its secrets
    Destroy {
        /// Do it; there is no way back.
        #[arg(long)]
        yes: bool,
    },
}

/// Where the value of a secret may go.
#[derive(Debug, Args)]
pub struct BindArguments {
    /// The secret.
    pub name: String,

    /// The only host that receives the value.
    #[arg(long)]
    pub host: Option<String>,

    /// The header that carries it; authorization if nothing is said.
    #[arg(long, requires = "host")]
    pub header: Option<String>,

    /// The environment variable for programs; the name of the secret if nothing is said.
    #[arg(long, value_name = "VARIABLE")]
    pub env: Option<String>,

    /// What uses it: exec for commands, mcp:ID for the program of an MCP server; with --field mcp:ID/TOOL or browser_act.
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
    /// A passphrase: typed, or of LANGO_VAULT_PASSPHRASE for a new vault and of LANGO_NEW_VAULT_PASSPHRASE for one that exists.
    #[arg(long)]
    pub passphrase: bool,

    /// A key file, made here; set vault.keyFile to it.
    #[arg(long, value_name = "PATH")]
    pub key_file: Option<PathBuf>,

    /// A key in the keyring of this desktop session.
    #[arg(long)]
    pub keyring: bool,
}

/// What can be done with unlock methods.
#[derive(Debug, Subcommand)]
pub enum MethodsCommand {
    /// The methods
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Add methods; those that exist stay
    Add(MethodArguments),
    /// Remove a method
    Remove {
        /// Its number, as the list shows it.
        id: u16,
        /// Also if nothing here shows that another method works.
        #[arg(long)]
        yes: bool,
    },
}

/// Parses the number of a binding.
fn parse_number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number.ok_or_else(|| {
        "it is not the number of a binding; `lango secrets describe` shows them".to_owned()
    })
}

/// Parses the number of entries to show.
pub(super) fn parse_limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 entry is shown".to_owned()),
        Ok(limit) => Ok(limit),
        Err(_) => Err("it is not a whole number".to_owned()),
    }
}
