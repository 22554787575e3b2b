//! Wallets with known keys, and payments from them.

use super::chain::Chain;
use lango_core::{BoxFuture, PaymentAccount, PaymentLimits, PaymentStore};
use lango_engine::SystemClock;
use lango_payment::{
    KeyBytes, Network, PaymentError, PaymentOrder, PaymentParts, Payments, Rpc, Usdc, WalletKey,
    Wei, address_of, parse_key,
};
use std::sync::Arc;
use std::time::Duration;

/// A limit that no payment reaches.
pub(crate) const NO_LIMIT: u64 = u64::MAX >> 16;

pub(crate) const NO_LIMITS: PaymentLimits = PaymentLimits {
    payment: NO_LIMIT,
    day: NO_LIMIT,
    recipient: NO_LIMIT,
    purpose: NO_LIMIT,
};

/// The private key of a test wallet, in hexadecimal.
#[derive(Clone)]
pub(crate) struct KnownKey(pub String);

impl WalletKey for KnownKey {
    fn key(&self) -> BoxFuture<'_, Result<KeyBytes, PaymentError>> {
        Box::pin(std::future::ready(parse_key(&self.0)))
    }
}

impl KnownKey {
    /// Returns the key with this number.
    pub(crate) fn number(number: u8) -> Self {
        Self(format!(
            "0x{:064x}",
            0xabcd_0000_u64 + u64::from(number) + 1
        ))
    }

    pub(crate) fn address(&self) -> String {
        let key = parse_key(&self.0).expect("a key");
        address_of(&key).expect("an address").lower()
    }

    pub(crate) fn account(&self) -> PaymentAccount {
        PaymentAccount {
            network: "base-sepolia".into(),
            wallet: self.address().into(),
        }
    }

    /// Returns the key with this number, after funding its wallet on the chain.
    pub(crate) fn funded(number: u8, chain: &Chain) -> Self {
        let key = Self::number(number);
        chain.fund(&key.address(), 1_000_000_000_000);
        key
    }
}

/// The parameters of [`Payments`] in a test.
pub(crate) struct Setup {
    pub url: String,
    pub key: KnownKey,
    pub store: Arc<dyn PaymentStore>,
    pub limits: PaymentLimits,
    pub timeout: Duration,
    pub max_fee: u128,
}

impl Setup {
    pub(crate) fn new(url: String, key: &KnownKey, store: Arc<dyn PaymentStore>) -> Self {
        Self {
            url,
            key: key.clone(),
            store,
            limits: NO_LIMITS,
            timeout: Duration::from_secs(10),
            max_fee: 100_000_000_000_000_000,
        }
    }

    pub(crate) fn payments(&self) -> Payments {
        Payments::new(PaymentParts {
            network: Network::BaseSepolia,
            rpc: Rpc::new(&self.url).expect("an address on this machine"),
            store: Arc::clone(&self.store),
            key: Arc::new(self.key.clone()),
            clock: Arc::new(SystemClock),
            limits: self.limits,
            max_fee: Wei(self.max_fee),
            confirmation_timeout: self.timeout,
        })
    }
}

/// Returns the address of a recipient.
pub(crate) fn recipient(number: u64) -> String {
    format!("0x{:040x}", 0xbeef_0000 + number)
}

/// Returns the order of a call: `units` of USDC to a recipient.
pub(crate) fn order(key: &str, units: u64, to: u64) -> PaymentOrder {
    PaymentOrder {
        user: "local".into(),
        session: key.into(),
        call_key: key.to_owned(),
        recipient: lango_payment::Address::parse(&recipient(to)).expect("an address"),
        amount: Usdc(units),
        purpose: format!("purpose {}", to % 7),
    }
}
