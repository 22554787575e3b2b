//! The ways in which a payment can fail before anything is paid. What happens after that is a state of the payment, not an
//! error.

use crate::amount::Usdc;
use crate::wei::Wei;
use lango_core::{PaymentLimit, StoreError, ToolError};

/// An error of payments.
#[derive(Debug, thiserror::Error)]
pub enum PaymentError {
    /// An amount is not one.
    #[error("`{text}` is not an amount of USDC: {problem}")]
    Amount {
        /// What was written.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An address is not one, or cannot be paid.
    #[error("`{text}` cannot be paid: {problem}")]
    Address {
        /// What was written.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A purpose is missing or too long.
    #[error("the purpose must have 1 to {most} characters on one line")]
    Purpose {
        /// The longest.
        most: usize,
    },
    /// A limit would be exceeded.
    #[error("{amount} exceed {}; {left} are left{}", limit_name(.limit), limit_end(.limit))]
    Limit {
        /// What was to be paid.
        amount: Usdc,
        /// The limit.
        limit: PaymentLimit,
        /// What is left of it.
        left: Usdc,
    },
    /// The network fee would be too high.
    #[error(
        "the network fee could be {needed}, and `payment.maxGasPerTransaction` allows {ceiling}; try again later, or raise it"
    )]
    Fee {
        /// What it could be.
        needed: Wei,
        /// The ceiling.
        ceiling: Wei,
    },
    /// The wallet has too little.
    #[error("the wallet {wallet} has {balance}, which is less than {amount}")]
    Funds {
        /// Its address.
        wallet: String,
        /// What it has.
        balance: Usdc,
        /// What was to be paid.
        amount: Usdc,
    },
    /// The RPC serves another chain.
    #[error(
        "the RPC serves chain {found}, and `payment.network` is chain {expected}; correct one of `payment.rpcUrl` and `payment.network`"
    )]
    WrongChain {
        /// The configured chain.
        expected: u64,
        /// The chain of the RPC.
        found: u64,
    },
    /// The RPC does not answer, or with something else than an answer.
    #[error("the RPC of `payment.rpcUrl` does not answer ({method}): {detail}")]
    Unreachable {
        /// The method that was called.
        method: &'static str,
        /// What happened.
        detail: String,
    },
    /// The RPC refuses a call.
    #[error("the RPC of `payment.rpcUrl` refuses {method}: {message}")]
    Refused {
        /// The method that was called.
        method: &'static str,
        /// What it said.
        message: String,
    },
    /// The wallet's key cannot be used.
    #[error("the key of the wallet cannot be used: {detail}")]
    Key {
        /// Why.
        detail: String,
    },
    /// A host's demand for payment cannot be met.
    #[error("not paid: {detail}")]
    Terms {
        /// Why.
        detail: String,
    },
    /// The payment of this call differs from what was asked for now.
    #[error("this call was already used for another payment")]
    Conflict,
    /// A request failed.
    #[error("{0}")]
    Request(#[from] lango_net::EgressError),
    /// The ledger failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<PaymentError> for ToolError {
    fn from(error: PaymentError) -> Self {
        let is_ours = !matches!(
            error,
            PaymentError::Unreachable { .. }
                | PaymentError::Refused { .. }
                | PaymentError::Terms { .. }
                | PaymentError::Request(_)
        );
        let text = error.to_string();
        if is_ours {
            Self::trusted(text)
        } else {
            Self::new(text)
        }
    }
}

fn limit_name(limit: &PaymentLimit) -> &'static str {
    match limit {
        PaymentLimit::Payment => "the limit of one payment (`payment.maxPerPayment`)",
        PaymentLimit::Day => "the limit of a day (`payment.maxPerDay`)",
        PaymentLimit::Recipient => "the limit of this recipient (`payment.maxPerRecipientPerDay`)",
        PaymentLimit::Purpose => "the limit of this purpose (`payment.maxPerPurposePerDay`)",
        PaymentLimit::Budget => "the budget that was allowed for this host in this session",
    }
}

fn limit_end(limit: &PaymentLimit) -> &'static str {
    match limit {
        PaymentLimit::Payment => "",
        PaymentLimit::Budget => "; call again, so that the user is asked for more",
        PaymentLimit::Day | PaymentLimit::Recipient | PaymentLimit::Purpose => {
            " until midnight UTC"
        }
    }
}
