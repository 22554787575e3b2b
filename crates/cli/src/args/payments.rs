//! The arguments of `lango payments`.

use super::secrets::parse_limit;
use clap::Subcommand;
use std::ffi::OsString;

/// The actions of `lango payments`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  lango payments wallet create         a new wallet, its key in the vault\n  \
                  lango payments balance\n  \
                  lango payments history --limit 50\n  \
                  lango payments reconcile             find out the outcome of unknown ones\n\n\
                  Agents pay with `payment_send` and `payment_fetch`, and lango asks you about each payment."
)]
pub enum PaymentsCommand {
    /// List the payments of the wallet, newest first
    History {
        /// The maximum number of payments.
        #[arg(long, default_value_t = 20, value_parser = parse_limit)]
        limit: usize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the balance of the wallet
    Balance {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Find out the outcome of open payments, and send them again while they are valid
    Reconcile {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Create, import or show the wallet
    Wallet {
        /// The action.
        #[command(subcommand)]
        command: WalletCommand,
    },
}

/// The actions of `lango payments wallet`.
#[derive(Debug, Subcommand)]
pub enum WalletCommand {
    /// Create a key and store it in the vault
    Create {
        /// The name of the secret.
        #[arg(default_value = "WALLET_KEY")]
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Store an existing key: type it, or pipe it to standard input
    Import {
        /// The name of the secret.
        #[arg(default_value = "WALLET_KEY")]
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// A key given as an argument, which is refused.
        #[arg(hide = true)]
        extra: Vec<OsString>,
    },
    /// Show the address of the configured wallet
    Address {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
