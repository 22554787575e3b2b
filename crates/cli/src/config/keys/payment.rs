//! The keys under `payment`. A project sets none of them: it would choose who is paid, how much, and what is believed of it.

use super::{Key, Untrusted};

pub(super) const RPC_URL: Key = Key {
    name: "payment.rpcUrl",
    help: "the JSON-RPC endpoint for payments, `https`; without one agents cannot pay",
    field: |settings, _| &mut settings.payment.rpc_url,
    untrusted: Untrusted::Ignored,
};

pub(super) const NETWORK: Key = Key {
    name: "payment.network",
    help: "where payments are made: `base`, or the test network `base-sepolia`",
    field: |settings, _| &mut settings.payment.network,
    untrusted: Untrusted::Ignored,
};

pub(super) const WALLET: Key = Key {
    name: "payment.wallet",
    help: "the secret with the key of the wallet, such as `secret:WALLET_KEY`; `lango payments wallet create` makes one",
    field: |settings, _| &mut settings.payment.wallet,
    untrusted: Untrusted::Ignored,
};

pub(super) const MAX_PER_PAYMENT: Key = Key {
    name: "payment.maxPerPayment",
    help: "the most USDC of one payment, such as `\"5\"`",
    field: |settings, _| &mut settings.payment.max_per_payment,
    untrusted: Untrusted::Ignored,
};

pub(super) const MAX_PER_DAY: Key = Key {
    name: "payment.maxPerDay",
    help: "the most USDC of a day (UTC)",
    field: |settings, _| &mut settings.payment.max_per_day,
    untrusted: Untrusted::Ignored,
};

pub(super) const MAX_PER_RECIPIENT: Key = Key {
    name: "payment.maxPerRecipientPerDay",
    help: "the most USDC to one recipient in a day",
    field: |settings, _| &mut settings.payment.max_per_recipient,
    untrusted: Untrusted::Ignored,
};

pub(super) const MAX_PER_PURPOSE: Key = Key {
    name: "payment.maxPerPurposePerDay",
    help: "the most USDC for one purpose in a day",
    field: |settings, _| &mut settings.payment.max_per_purpose,
    untrusted: Untrusted::Ignored,
};

pub(super) const MAX_GAS: Key = Key {
    name: "payment.maxGasPerTransaction",
    help: "the most that the network fee of one payment may be, such as `\"0.0002 ETH\"` or `\"200000 gwei\"`",
    field: |settings, _| &mut settings.payment.max_gas,
    untrusted: Untrusted::Ignored,
};

pub(super) const CONFIRMATION_TIMEOUT: Key = Key {
    name: "payment.confirmationTimeout",
    help: "how long a payment waits to be confirmed before its result is unknown",
    field: |settings, _| &mut settings.payment.confirmation_timeout,
    untrusted: Untrusted::Ignored,
};
