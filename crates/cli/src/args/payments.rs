//! The arguments of `lango payments`.

use super::secrets::parse_limit;
use clap::Subcommand;
use std::ffi::OsString;

/// What can be done with payments.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango payments wallet create         a new wallet, its key in the vault\n  \
                  lango payments balance\n  \
                  lango payments history --limit 50\n  \
                  lango payments reconcile             find out what became of unknown ones\n\n\
                  Agents pay with `payment_send` and `payment_fetch`, and you are asked about each payment."
)]
pub enum PaymentsCommand {
    /// The payments of the wallet, the newest first
    History {
        /// How many at most.
        #[arg(long, default_value_t = 20, value_parser = parse_limit)]
        limit: usize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// What the wallet has
    Balance {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Find out what became of payments that are open, and send them again while they are valid
    Reconcile {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make, import or show the wallet
    Wallet {
        /// What to do.
        #[command(subcommand)]
        command: WalletCommand,
    },
}

/// What can be done with the wallet.
#[derive(Debug, Subcommand)]
pub enum WalletCommand {
    /// Make a key and store it in the vault
    Create {
        /// The name of the secret.
        #[arg(default_value = "WALLET_KEY")]
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Store a key that exists: type it, or pipe it to standard input
    Import {
        /// The name of the secret.
        #[arg(default_value = "WALLET_KEY")]
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// What would be a key; it is refused.
        #[arg(hide = true)]
        extra: Vec<OsString>,
    },
    /// The address of the configured wallet
    Address {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
