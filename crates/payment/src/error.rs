//! The errors of payments before anything is paid. After that, the outcome is a state of the payment, not an error.

use crate::amount::Usdc;
use crate::wei::Wei;
use lango_core::{PaymentLimit, StoreError, ToolError};

#[derive(Debug, thiserror::Error)]
pub enum PaymentError {
    #[error("`{text}` is not an amount of USDC: {problem}")]
    Amount { text: String, problem: String },
    /// The address is invalid or cannot be paid.
    #[error("`{text}` cannot be paid: {problem}")]
    Address { text: String, problem: String },
    #[error("the purpose must have 1 to {max} characters on one line")]
    Purpose { max: usize },
    #[error("{amount} is more than {} allows; {left} is left{}", limit_name(.limit), limit_end(.limit))]
    Limit {
        amount: Usdc,
        limit: PaymentLimit,
        left: Usdc,
    },
    #[error(
        "the network fee could be {needed}, but `payment.maxGasPerTransaction` is {ceiling}; try again later or raise it"
    )]
    Fee { needed: Wei, ceiling: Wei },
    #[error("the wallet {wallet} has {balance}, which is less than {amount}")]
    Funds {
        /// The wallet's address.
        wallet: String,
        balance: Usdc,
        amount: Usdc,
    },
    #[error(
        "the endpoint of `payment.rpcUrl` serves chain {found}, but `payment.network` is chain {expected}; correct one of the two"
    )]
    WrongChain { expected: u64, found: u64 },
    /// The RPC endpoint does not answer, or its response is invalid.
    #[error("`payment.rpcUrl` does not answer ({method}): {detail}")]
    Unreachable {
        method: &'static str,
        detail: String,
    },
    /// The RPC endpoint refuses a call.
    #[error("`payment.rpcUrl` refused {method}: {message}")]
    Refused {
        method: &'static str,
        message: String,
    },
    #[error("the wallet's key cannot be used: {detail}")]
    Key { detail: String },
    /// A host's demand for payment cannot be met.
    #[error("not paid: {detail}")]
    Terms { detail: String },
    /// The stored payment of this call differs from the requested one.
    #[error("this call was already used for another payment")]
    Conflict,
    #[error("{0}")]
    Request(#[from] lango_net::EgressError),
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
        PaymentLimit::Payment => "the limit per payment (`payment.maxPerPayment`)",
        PaymentLimit::Day => "the limit per day (`payment.maxPerDay`)",
        PaymentLimit::Recipient => "the limit for this recipient (`payment.maxPerRecipientPerDay`)",
        PaymentLimit::Purpose => "the limit for this purpose (`payment.maxPerPurposePerDay`)",
        PaymentLimit::Budget => "the user's budget for this host in this session",
    }
}

fn limit_end(limit: &PaymentLimit) -> &'static str {
    match limit {
        PaymentLimit::Payment => "",
        PaymentLimit::Budget => "; call again to ask the user for a larger budget",
        PaymentLimit::Day | PaymentLimit::Recipient | PaymentLimit::Purpose => {
            " until midnight UTC"
        }
    }
}
