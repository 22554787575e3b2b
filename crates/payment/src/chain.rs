//! The queries and transactions that payments send to the chain.

use crate::address::Address;
use crate::amount::Usdc;
use crate::error::PaymentError;
use crate::hash::{hex, keccak, unhex};
use crate::network::Network;
use crate::rpc::Rpc;
use crate::wei::Wei;
use serde_json::{Value, json};

/// The chain behind an RPC endpoint.
#[derive(Debug)]
pub(crate) struct Chain {
    pub network: Network,
    rpc: Rpc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub number: u64,
    /// Seconds since 1970.
    pub timestamp: u64,
    /// Wei per unit of gas.
    pub base_fee: u128,
}

/// The result of a mined transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receipt {
    Succeeded,
    Reverted,
}

/// The transactions of an account to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountScope {
    /// Transactions in blocks.
    Mined,
    /// Transactions in blocks, and those waiting for a block.
    Pending,
}

impl Chain {
    pub(crate) fn new(network: Network, rpc: Rpc) -> Self {
        Self { network, rpc }
    }

    /// Fails if the RPC serves another chain.
    pub(crate) async fn check_id(&self) -> Result<(), PaymentError> {
        let found = self.quantity("eth_chainId", json!([])).await?;
        let expected = self.network.chain_id();
        if found == u128::from(expected) {
            return Ok(());
        }
        let found = u64::try_from(found).unwrap_or(u64::MAX);
        Err(PaymentError::WrongChain { expected, found })
    }

    pub(crate) async fn latest_block(&self) -> Result<Block, PaymentError> {
        let method = "eth_getBlockByNumber";
        let block = self.rpc.call(method, json!(["latest", false])).await?;
        let field = |name: &str| quantity_of(method, &block[name]);
        Ok(Block {
            number: narrow(method, field("number")?)?,
            timestamp: narrow(method, field("timestamp")?)?,
            base_fee: field("baseFeePerGas")?,
        })
    }

    pub(crate) async fn tip(&self) -> Result<u128, PaymentError> {
        self.quantity("eth_maxPriorityFeePerGas", json!([])).await
    }

    /// Returns the USDC balance of a wallet.
    pub(crate) async fn balance(&self, wallet: &Address) -> Result<Usdc, PaymentError> {
        let data = call_data(b"balanceOf(address)", &[wallet.word()]);
        let word = self.token_call(&data, "latest".into()).await?;
        // A balance that does not fit is clamped; no wallet has that much.
        let is_small = word[..24].iter().all(|byte| *byte == 0);
        let low = u64::from_be_bytes(word[24..].try_into().unwrap_or([0; 8]));
        Ok(Usdc(if is_small { low } else { u64::MAX }))
    }

    /// Returns the ether balance of a wallet.
    pub(crate) async fn ether(&self, wallet: &Address) -> Result<Wei, PaymentError> {
        let params = json!([wallet.lower(), "latest"]);
        self.quantity("eth_getBalance", params).await.map(Wei)
    }

    /// Returns whether an authorization had been used as of a block.
    pub(crate) async fn is_used(
        &self,
        wallet: &Address,
        nonce: &[u8; 32],
        at: Block,
    ) -> Result<bool, PaymentError> {
        let data = call_data(
            b"authorizationState(address,bytes32)",
            &[wallet.word(), *nonce],
        );
        let word = self.token_call(&data, format!("{:#x}", at.number)).await?;
        Ok(word != [0; 32])
    }

    /// Returns the number of transactions of an account, which is its next nonce.
    pub(crate) async fn transactions(
        &self,
        wallet: &Address,
        scope: CountScope,
    ) -> Result<u64, PaymentError> {
        let method = "eth_getTransactionCount";
        let tag = match scope {
            CountScope::Mined => "latest",
            CountScope::Pending => "pending",
        };
        let count = self.quantity(method, json!([wallet.lower(), tag])).await?;
        narrow(method, count)
    }

    /// Estimates the gas of a call to the token contract. Fails if the call would fail.
    pub(crate) async fn estimate_gas(
        &self,
        from: &Address,
        data: &[u8],
    ) -> Result<u64, PaymentError> {
        let method = "eth_estimateGas";
        let data = format!("0x{}", hex(data));
        let call =
            json!({ "from": from.lower(), "to": self.network.token().lower(), "data": data });
        let gas = self.quantity(method, json!([call])).await?;
        narrow(method, gas)
    }

    /// Sends a signed transaction.
    pub(crate) async fn broadcast(&self, raw: &[u8]) -> Result<(), PaymentError> {
        let raw = format!("0x{}", hex(raw));
        let sent = self.rpc.call("eth_sendRawTransaction", json!([raw])).await;
        sent.map(drop)
    }

    /// Returns the result of a transaction, or `None` if it is not in a block.
    pub(crate) async fn receipt(&self, hash: &str) -> Result<Option<Receipt>, PaymentError> {
        let method = "eth_getTransactionReceipt";
        let receipt = self.rpc.call(method, json!([hash])).await?;
        if receipt.is_null() {
            return Ok(None);
        }
        Ok(Some(match quantity_of(method, &receipt["status"])? {
            1 => Receipt::Succeeded,
            _ => Receipt::Reverted,
        }))
    }

    /// Returns the maximum fee per gas that a transaction offers, in wei, or `None` if the node does not know the transaction.
    pub(crate) async fn offered_fee(&self, hash: &str) -> Result<Option<u128>, PaymentError> {
        let method = "eth_getTransactionByHash";
        let found = self.rpc.call(method, json!([hash])).await?;
        if found.is_null() {
            return Ok(None);
        }
        quantity_of(method, &found["maxFeePerGas"]).map(Some)
    }

    async fn token_call(&self, data: &[u8], block: String) -> Result<[u8; 32], PaymentError> {
        let method = "eth_call";
        let data = format!("0x{}", hex(data));
        let call = json!({ "to": self.network.token().lower(), "data": data });
        let result = self.rpc.call(method, json!([call, block])).await?;
        let digits = result.as_str().and_then(|text| text.strip_prefix("0x"));
        let bytes = digits.and_then(unhex);
        let word = bytes.and_then(|bytes| bytes.try_into().ok());
        word.ok_or_else(|| PaymentError::Unreachable {
            method,
            detail: "this chain has no USDC contract at the expected address".to_owned(),
        })
    }

    async fn quantity(&self, method: &'static str, params: Value) -> Result<u128, PaymentError> {
        quantity_of(method, &self.rpc.call(method, params).await?)
    }
}

/// Encodes a call to a contract method whose arguments are 32-byte words.
fn call_data(method: &[u8], words: &[[u8; 32]]) -> Vec<u8> {
    let mut data = keccak(method)[..4].to_vec();
    data.extend(words.iter().flatten());
    data
}

fn quantity_of(method: &'static str, value: &Value) -> Result<u128, PaymentError> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let number = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| PaymentError::Unreachable {
        method,
        detail: "the response has an invalid number".to_owned(),
    })
}

fn narrow(method: &'static str, wide: u128) -> Result<u64, PaymentError> {
    u64::try_from(wide).map_err(|_| PaymentError::Unreachable {
        method,
        detail: "the response has a number that is too large".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorization::number;

    #[test]
    fn calls_to_the_token_contract_use_its_selectors() {
        let selector = |method: &[u8]| hex(&call_data(method, &[]));
        assert_eq!(selector(b"balanceOf(address)"), "70a08231");
        assert_eq!(selector(b"authorizationState(address,bytes32)"), "e94a0102");
        assert_eq!(call_data(b"x()", &[number(1)]).len(), 36);
    }
}
