//! Payments by agents, in USDC on Base.
//!
//! A payment is an EIP-3009 authorization whose nonce is derived from the tool call that pays. The token contract accepts each
//! nonce once, so neither a crash nor a retry pays twice. [`Payments`] reserves the amount under all limits in one database
//! transaction, stores each signature before sending it, and later reconciles payments that were not confirmed in time.
//! `payment_fetch` pays hosts that demand payment with x402.
//!
//! The wallet's key is read through [`WalletKey`] for each signature. Callers cannot make this crate sign arbitrary data.

mod address;
mod amount;
mod authorization;
mod chain;
mod error;
mod fetch;
mod hash;
mod network;
mod payments;
mod rpc;
mod show;
mod tools;
mod transaction;
mod wallet;
mod wei;
mod x402;

pub use address::Address;
pub use amount::Usdc;
pub use error::PaymentError;
pub use network::Network;
pub use payments::{
    MAX_PURPOSE_CHARS, PaymentOrder, PaymentParts, PaymentQuote, Payments, ReconcileReport,
    RemainingLimits,
};
pub use rpc::Rpc;
pub use show::{amount_text, checksummed, payment_json};
pub use tools::payment_tools;
pub use wallet::{KeyBytes, WalletKey, address_of, key_text, parse_key};
pub use wei::Wei;
