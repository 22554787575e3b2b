//! EIP-3009 authorizations of transfers, signed as typed data (EIP-712).
//!
//! The nonce is derived from the wallet, the network and the idempotency key of the tool call that pays. The token contract accepts
//! each nonce once, so no crash or retry of the same call pays twice, even if lango's database is wrong.

use crate::address::Address;
use crate::hash::{keccak, keccak_all};
use crate::network::Network;
use crate::wallet::{Signature, Signer};

/// The label that separates these nonces from every other use of the hash.
const NONCE_LABEL: &[u8] = b"lango payment nonce 1";

/// An authorized transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Authorization {
    pub network: Network,
    pub from: Address,
    pub to: Address,
    pub amount: u64,
    pub valid_before: u64,
    pub nonce: [u8; 32],
}

/// Returns the nonce of the authorization for a call.
pub(crate) fn nonce(network: Network, wallet: &Address, call_key: &str) -> [u8; 32] {
    keccak_all(&[
        &keccak(NONCE_LABEL),
        &network.chain_id().to_be_bytes(),
        &network.token().0,
        &wallet.0,
        &keccak(call_key.as_bytes()),
    ])
}

impl Authorization {
    /// Returns the digest to sign.
    fn digest(&self) -> [u8; 32] {
        let structure = keccak_all(&[
            &keccak(b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"),
            &self.from.word(),
            &self.to.word(),
            &number(self.amount),
            &number(0),
            &number(self.valid_before),
            &self.nonce,
        ]);
        keccak_all(&[b"\x19\x01", &self.network.domain_separator(), &structure])
    }

    pub(crate) fn sign(&self, signer: &Signer) -> Signature {
        signer.sign(&self.digest())
    }

    /// Encodes the contract call that executes the transfer.
    pub(crate) fn call_data(&self, signature: &[u8; 65]) -> Vec<u8> {
        let method = keccak(b"transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)");
        let mut data = method[..4].to_vec();
        for word in [
            self.from.word(),
            self.to.word(),
            number(self.amount),
            number(0),
            number(self.valid_before),
            self.nonce,
            number(signature[64].into()),
        ] {
            data.extend(word);
        }
        data.extend(&signature[..64]);
        data
    }
}

/// Encodes a number as a 32-byte word of contract data.
pub(crate) fn number(number: u64) -> [u8; 32] {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&number.to_be_bytes());
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hex;

    #[test]
    fn the_method_and_type_hashes_match_the_contract() {
        let one = Address([1; 20]);
        let authorization = Authorization {
            network: Network::Base,
            from: one,
            to: one,
            amount: 1,
            valid_before: 2,
            nonce: [3; 32],
        };
        let data = authorization.call_data(&[0; 65]);
        assert_eq!((hex(&data[..4]).as_str(), data.len()), ("e3ee160e", 292));
        // This constant is from the contract's source.
        let type_hash = keccak(b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)");
        assert_eq!(
            hex(&type_hash),
            "7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267"
        );
    }

    #[test]
    fn a_nonce_belongs_to_one_call_wallet_and_network() {
        let (one, other) = (Address([1; 20]), Address([2; 20]));
        let first = nonce(Network::Base, &one, "t/c");
        assert_eq!(first, nonce(Network::Base, &one, "t/c"));
        assert_ne!(first, nonce(Network::Base, &one, "t/d"));
        assert_ne!(first, nonce(Network::Base, &other, "t/c"));
        assert_ne!(first, nonce(Network::BaseSepolia, &one, "t/c"));
    }
}
