//! Addresses of accounts and contracts, with EIP-55 checksums.

use crate::error::PaymentError;
use crate::hash::{hex, keccak, unhex};
use std::fmt;

/// The address of an account or a contract.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Address(pub [u8; 20]);

impl Address {
    /// Parses `0x` followed by 40 hexadecimal digits. Digits in mixed case must have the right checksum, which detects mistyped
    /// addresses. Fails for the zero address.
    pub fn parse(text: &str) -> Result<Self, PaymentError> {
        let wrong = |problem: &str| PaymentError::Address {
            text: text.chars().take(60).collect(),
            problem: problem.to_owned(),
        };
        let digits = text.strip_prefix("0x");
        let digits = digits.filter(|digits| digits.len() == 40);
        let bytes = digits.and_then(unhex);
        let bytes: Option<[u8; 20]> = bytes.and_then(|bytes| bytes.try_into().ok());
        let (Some(digits), Some(bytes)) = (digits, bytes) else {
            return Err(wrong(
                "an address is `0x` followed by 40 hexadecimal digits",
            ));
        };
        let address = Self(bytes);
        let has = |test: fn(&u8) -> bool| digits.as_bytes().iter().any(test);
        let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
        if is_mixed && address.to_string() != text {
            return Err(wrong(
                "its checksum does not match, so at least one digit is wrong",
            ));
        }
        if bytes == [0; 20] {
            return Err(wrong("the zero address belongs to no account"));
        }
        Ok(address)
    }

    /// Returns the address in lower case.
    pub fn lower(&self) -> String {
        format!("0x{}", hex(&self.0))
    }

    /// Returns the address as a 32-byte word of contract data.
    pub(crate) fn word(&self) -> [u8; 32] {
        let mut word = [0; 32];
        word[12..].copy_from_slice(&self.0);
        word
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = hex(&self.0);
        let hash = hex(&keccak(digits.as_bytes()));
        let cased = digits.chars().zip(hash.chars());
        let cased: String = cased
            .map(|(digit, nibble)| match nibble {
                '8'..='9' | 'a'..='f' => digit.to_ascii_uppercase(),
                _ => digit,
            })
            .collect();
        write!(f, "0x{cased}")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_mixed_case_must_have_the_right_checksum() {
        // The examples of EIP-55.
        for right in [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ] {
            assert_eq!(Address::parse(right).unwrap().to_string(), right);
            assert!(Address::parse(&right.to_lowercase()).is_ok());
            let upper = format!("0x{}", right[2..].to_uppercase());
            assert!(Address::parse(&upper).is_ok());
            let swapped = right.replace(['A', 'B'], "a");
            assert!(Address::parse(&swapped).is_err(), "{swapped}");
        }
    }

    #[test]
    fn an_invalid_address_is_refused() {
        for wrong in [
            "",
            "0x",
            "vitalik.eth",
            "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed0",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg",
            "0X5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0x0000000000000000000000000000000000000000",
            " 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }
}
