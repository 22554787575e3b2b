//! Payments of agents in USDC on Base.
//!
//! A payment is an authorization of EIP-3009 whose nonce follows from the call that pays. The token contract accepts it once,
//! so that neither a crash nor a retry pays twice. [`Payments`] reserves the amount under all limits in one database
//! transaction, stores what it signed before it sends it, and finds out later what became of payments that nothing
//! confirmed in time. `payment_fetch` pays hosts that demand it by x402.
//!
//! The wallet's key comes through [`WalletKey`] for the moment of a signature. Nothing here signs what a caller chose.

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
pub use payments::{LimitsLeft, MOST_PURPOSE, Order, PaymentParts, Payments, Quote, Reconciled};
pub use rpc::Rpc;
pub use show::{amount_text, checksummed, payment_json};
pub use tools::payment_tools;
pub use wallet::{KeyBytes, WalletKey, address_of, key_text, parse_key};
pub use wei::Wei;
