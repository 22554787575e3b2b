//! The arguments of `lango tokens` and `lango web`.

use super::serve::{Grace, ServeArguments};
use clap::{Args, Subcommand};
use lango_core::Scope;

/// What to do with access tokens.
#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    /// Create a token for a program or a device; it is printed once
    Create {
        /// What you call it, such as the name of the device.
        name: String,
        /// What it allows: read, run or approve; can be repeated, and replaces the default.
        #[arg(long, value_name = "SCOPE", default_values = ["read", "run"])]
        scope: Vec<Scope>,
        /// The user that it acts as, instead of session.user.
        #[arg(long)]
        user: Option<String>,
        /// How long it is valid, such as 30d; without it until it is revoked.
        #[arg(long, value_name = "TIME")]
        expires: Option<Grace>,
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
    /// Revoke a token or sign a browser out
    Revoke {
        /// Its id, or the beginning of it.
        id: String,
    },
    /// Print a link that signs one browser in
    Link {
        /// Where the browser reaches the server, instead of the configured address.
        #[arg(long)]
        url: Option<String>,
    },
}

/// What `lango web` was told.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lango web\n  lango web --port 0\n  lango web --no-open\n\n\
                  It is `lango serve` with a link that signs your browser in. Ctrl-C stops."
)]
pub struct WebArguments {
    /// How the server runs.
    #[command(flatten)]
    pub serve: ServeArguments,
    /// Print the link without opening a browser.
    #[arg(long)]
    pub no_open: bool,
}
