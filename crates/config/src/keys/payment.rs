//! The keys under `payment`. A project may not set them: it could choose the wallet, the limits, and the endpoint
//! that reports what was paid.

use super::{Key, UntrustedPolicy};

pub(super) const RPC_URL: Key = Key {
    name: "payment.rpcUrl",
    help: "the JSON-RPC endpoint for payments, `https`; agents cannot pay without one",
    field: |settings, _| &mut settings.payment.rpc_url,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const NETWORK: Key = Key {
    name: "payment.network",
    help: "the network for payments: `base`, or the test network `base-sepolia`",
    field: |settings, _| &mut settings.payment.network,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const WALLET: Key = Key {
    name: "payment.wallet",
    help: "the secret with the wallet's key, such as `secret:WALLET_KEY`; create one with `lango payments wallet create`",
    field: |settings, _| &mut settings.payment.wallet,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const MAX_PER_PAYMENT: Key = Key {
    name: "payment.maxPerPayment",
    help: "the most USDC per payment, such as `\"5\"`",
    field: |settings, _| &mut settings.payment.max_per_payment,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const MAX_PER_DAY: Key = Key {
    name: "payment.maxPerDay",
    help: "the most USDC per day (UTC)",
    field: |settings, _| &mut settings.payment.max_per_day,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const MAX_PER_RECIPIENT: Key = Key {
    name: "payment.maxPerRecipientPerDay",
    help: "the most USDC per recipient and day",
    field: |settings, _| &mut settings.payment.max_per_recipient,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const MAX_PER_PURPOSE: Key = Key {
    name: "payment.maxPerPurposePerDay",
    help: "the most USDC per purpose and day",
    field: |settings, _| &mut settings.payment.max_per_purpose,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const MAX_GAS: Key = Key {
    name: "payment.maxGasPerTransaction",
    help: "the highest network fee of one payment, such as `\"0.0002 ETH\"` or `\"200000 gwei\"`",
    field: |settings, _| &mut settings.payment.max_gas,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const CONFIRMATION_TIMEOUT: Key = Key {
    name: "payment.confirmationTimeout",
    help: "how long to wait for a payment's confirmation before its outcome counts as unknown",
    field: |settings, _| &mut settings.payment.confirmation_timeout,
    untrusted: UntrustedPolicy::Ignored,
};
