//! EIP-1559 transactions of the wallet, encoded as RLP.

use crate::address::Address;
use crate::hash::{hex, keccak};
use crate::wallet::{Signature, Signer};
use crate::wei::Wei;

/// The transaction type of EIP-1559.
const TYPE: u8 = 2;

/// A contract call that transfers no ether.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transaction {
    pub chain_id: u64,
    pub nonce: u64,
    pub fees: Fees,
    pub to: Address,
    pub data: Vec<u8>,
}

/// The fee limits of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fees {
    /// Maximum gas.
    pub gas: u64,
    /// Maximum wei per unit of gas.
    pub fee: u128,
    /// The part of `fee` for the block's producer.
    pub tip: u128,
}

impl Fees {
    /// Returns the maximum fee of the transaction.
    pub(crate) fn max_total(&self) -> Wei {
        Wei(self.fee.saturating_mul(self.gas.into()))
    }
}

impl Transaction {
    /// Signs the transaction. Returns the bytes to send and their hash.
    pub(crate) fn sign(&self, signer: &Signer) -> (Vec<u8>, String) {
        let signature = signer.sign(&keccak(&self.encode(None)));
        let raw = self.encode(Some(&signature));
        let hash = format!("0x{}", hex(&keccak(&raw)));
        (raw, hash)
    }

    fn encode(&self, signature: Option<&Signature>) -> Vec<u8> {
        let mut fields = Vec::new();
        integer(&mut fields, self.chain_id.into());
        integer(&mut fields, self.nonce.into());
        integer(&mut fields, self.fees.tip);
        integer(&mut fields, self.fees.fee);
        integer(&mut fields, self.fees.gas.into());
        string(&mut fields, &self.to.0);
        // The value: no ether.
        integer(&mut fields, 0);
        string(&mut fields, &self.data);
        // An empty access list.
        fields.push(0xc0);
        if let Some(signature) = signature {
            integer(&mut fields, signature.parity.into());
            string(&mut fields, trimmed(&signature.r));
            string(&mut fields, trimmed(&signature.s));
        }
        let mut encoded = vec![TYPE];
        length(&mut encoded, fields.len(), 0xc0);
        encoded.extend(fields);
        encoded
    }
}

fn integer(out: &mut Vec<u8>, number: u128) {
    string(out, trimmed(&number.to_be_bytes()));
}

/// Returns the bytes without leading zeros.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| *byte != 0);
    &bytes[start.unwrap_or(bytes.len())..]
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes {
        [byte] if *byte < 0x80 => out.push(*byte),
        bytes => {
            length(out, bytes.len(), 0x80);
            out.extend(bytes);
        }
    }
}

/// Writes the length prefix of a string or a list.
fn length(out: &mut Vec<u8>, length: usize, offset: u8) {
    let digits = length.to_be_bytes();
    let digits = trimmed(&digits);
    match u8::try_from(length) {
        Ok(short) if short <= 55 => out.push(offset + short),
        _ => {
            let count = u8::try_from(digits.len()).unwrap_or(u8::MAX);
            out.push(offset + 55 + count);
            out.extend(digits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_strings_are_encoded_as_specified() {
        let encoded = |number| {
            let mut out = Vec::new();
            integer(&mut out, number);
            hex(&out)
        };
        assert_eq!(encoded(0), "80");
        assert_eq!(encoded(0x7f), "7f");
        assert_eq!(encoded(0x80), "8180");
        assert_eq!(encoded(0x0400), "820400");
        let mut long = Vec::new();
        string(&mut long, &[7; 56]);
        assert_eq!(hex(&long[..2]), "b838");
        let mut longer = Vec::new();
        string(&mut longer, &[7; 300]);
        assert_eq!(hex(&longer[..3]), "b9012c");
    }
}
