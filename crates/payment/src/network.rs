//! The supported networks, and the USDC contract on each.

use crate::address::Address;
use crate::hash::{keccak, keccak_all};
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Base,
    /// The test network of Base. Its USDC has no value.
    BaseSepolia,
}

impl Network {
    /// Returns the name used in the configuration and in version 1 of x402.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::BaseSepolia => "base-sepolia",
        }
    }

    pub fn chain_id(self) -> u64 {
        match self {
            Self::Base => 8453,
            Self::BaseSepolia => 84532,
        }
    }

    /// Returns the address of the USDC contract.
    pub fn token(self) -> Address {
        Address(match self {
            Self::Base => [
                0x83, 0x35, 0x89, 0xfc, 0xd6, 0xed, 0xb6, 0xe0, 0x8f, 0x4c, 0x7c, 0x32, 0xd4, 0xf7,
                0x1b, 0x54, 0xbd, 0xa0, 0x29, 0x13,
            ],
            Self::BaseSepolia => [
                0x03, 0x6c, 0xbd, 0x53, 0x84, 0x2c, 0x54, 0x26, 0x63, 0x4e, 0x79, 0x29, 0x54, 0x1e,
                0xc2, 0x31, 0x8f, 0x3d, 0xcf, 0x7e,
            ],
        })
    }

    /// Returns the contract's name in its EIP-712 domain. It differs between the networks.
    pub fn token_name(self) -> &'static str {
        match self {
            Self::Base => "USD Coin",
            Self::BaseSepolia => "USDC",
        }
    }

    /// Returns the contract's version in its EIP-712 domain.
    pub fn token_version(self) -> &'static str {
        "2"
    }

    /// Returns the EIP-712 domain separator of the contract.
    pub(crate) fn domain_separator(self) -> [u8; 32] {
        let mut chain = [0; 32];
        chain[24..].copy_from_slice(&self.chain_id().to_be_bytes());
        keccak_all(&[
            &keccak(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
            &keccak(self.token_name().as_bytes()),
            &keccak(self.token_version().as_bytes()),
            &chain,
            &self.token().word(),
        ])
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Base => "Base",
            Self::BaseSepolia => "Base Sepolia (test network)",
        })
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Base, Self::BaseSepolia];
        let found = all.into_iter().find(|network| network.name() == text);
        found.ok_or_else(|| "the network must be `base` or `base-sepolia`".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_addresses_are_those_published_by_the_issuer() {
        let token = |network: Network| network.token().to_string();
        assert_eq!(
            token(Network::Base),
            "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
        );
        assert_eq!(
            token(Network::BaseSepolia),
            "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
        );
    }
}
