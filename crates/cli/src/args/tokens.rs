//! The arguments of `lango tokens` and `lango web`.

use super::serve::{DurationArg, ServeArguments};
use clap::{Args, Subcommand};
use lango_core::Scope;

/// The actions of `lango tokens`.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// Create a token for a program or a device; it is printed once
    Create {
        /// A name for the token, such as that of the device.
        name: String,
        /// What it allows: read, run or approve; can be repeated, and replaces the default.
        #[arg(long, value_name = "SCOPE", default_values = ["read", "run"])]
        scope: Vec<Scope>,
        /// The user that it acts as, instead of session.user.
        #[arg(long)]
        user: Option<String>,
        /// How long it is valid, such as 30d; until it is revoked if not given.
        #[arg(long, value_name = "TIME")]
        expires: Option<DurationArg>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List tokens, signed-in browsers and links, without their secrets
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token, or sign out a browser
    Revoke {
        /// The id, or its first characters.
        id: String,
    },
    /// Print a link that signs in one browser
    Link {
        /// The server's address as the browser sees it, instead of the configured one.
        #[arg(long)]
        url: Option<String>,
    },
}

impl Default for TokensCommand {
    fn default() -> Self {
        Self::List { json: false }
    }
}

/// Arguments of `lango web`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lango web\n  lango web --port 0\n  lango web --no-open\n\n\
                  It is `lango serve` with a link that signs your browser in. Ctrl-C stops."
)]
pub struct WebArguments {
    /// The arguments of the server.
    #[command(flatten)]
    pub serve: ServeArguments,
    /// Print the link without opening a browser.
    #[arg(long)]
    pub no_open: bool,
}
