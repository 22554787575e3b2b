//! Amounts of USDC as integers in its smallest unit, a millionth. Amounts are never floating-point numbers.

use crate::error::PaymentError;
use std::fmt;

/// Decimal places of USDC.
const DECIMALS: usize = 6;

/// Number of smallest units in one USDC.
const UNIT: u64 = 1_000_000;

/// An amount of USDC, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Usdc(pub u64);

impl Usdc {
    /// Parses a decimal number such as `12.5`: digits with at most six decimals, without a sign, exponent, separator or space.
    pub fn parse(text: &str) -> Result<Self, PaymentError> {
        let wrong = |problem: &str| PaymentError::Amount {
            text: text.chars().take(40).collect(),
            problem: problem.to_owned(),
        };
        let (whole, part) = match text.split_once('.') {
            Some((whole, part)) if !part.is_empty() => (whole, part),
            Some(_) => return Err(wrong("digits are missing after the point")),
            None => (text, ""),
        };
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !are_digits(whole) || !are_digits(part) {
            return Err(wrong("it is not a decimal number such as `12.5`"));
        }
        if part.len() > DECIMALS {
            return Err(wrong("USDC has at most 6 decimals"));
        }
        let padded: u64 = format!("{part:0<DECIMALS$}").parse().unwrap_or(0);
        let whole: Option<u64> = whole.parse().ok();
        let units = whole.and_then(|whole| whole.checked_mul(UNIT)?.checked_add(padded));
        // The ledger adds up amounts in signed 64-bit integers, so this leaves room for sums.
        let units = units.filter(|units| *units <= u64::MAX >> 16);
        units.map(Self).ok_or_else(|| wrong("it is too large"))
    }

    /// Parses an amount to pay: as [`parse`](Self::parse) does, but zero is an error.
    pub fn parse_payment(text: &str) -> Result<Self, PaymentError> {
        match Self::parse(text)? {
            Self(0) => Err(PaymentError::Amount {
                text: text.to_owned(),
                problem: "it must be greater than zero".to_owned(),
            }),
            amount => Ok(amount),
        }
    }
}

impl fmt::Display for Usdc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / UNIT, self.0 % UNIT);
        let part = format!("{part:06}");
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole} USDC"),
            part => write!(f, "{whole}.{part} USDC"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_amount_is_a_plain_decimal_number() {
        let units = |text| Usdc::parse(text).map(|amount| amount.0).ok();
        assert_eq!(units("1"), Some(1_000_000));
        assert_eq!(units("0.000001"), Some(1));
        assert_eq!(units("007.5"), Some(7_500_000));
        assert_eq!(units("12.345678"), Some(12_345_678));
        for wrong in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1E3",
            "1,5",
            "1_000",
            " 1",
            "1 ",
            "0x10",
            "NaN",
            "inf",
            "1.2345678",
            "1.2.3",
            "１",
            "99999999999999999999",
            "18446744073709551615",
        ] {
            assert_eq!(units(wrong), None, "{wrong}");
        }
        assert!(Usdc::parse_payment("0.000000").is_err());
    }

    proptest! {
        #[test]
        fn a_displayed_amount_parses_to_the_same_amount(units in 0..u64::MAX >> 16) {
            let shown = Usdc(units).to_string();
            let number = shown.strip_suffix(" USDC").unwrap();
            prop_assert_eq!(Usdc::parse(number).unwrap(), Usdc(units));
        }
    }
}
