//! Amounts of ether, for network fees, as integers in wei.

use std::fmt;

/// Number of wei in one ether.
const ETHER: u128 = 1_000_000_000_000_000_000;
/// Number of wei in one gwei.
const GWEI: u128 = 1_000_000_000;

/// An amount of ether, in wei.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Wei(pub u128);

impl Wei {
    /// Parses a decimal number with its unit, such as `0.0002 ETH` or `200000 gwei`. Returns `None` if it is invalid or more than
    /// a thousand ether.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = text.split_once(' ')?;
        let unit = match unit {
            "ETH" => ETHER,
            "gwei" => GWEI,
            _ => return None,
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let are_digits = |text: &str| {
            (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !are_digits(whole) || !are_digits(part) {
            return None;
        }
        let scale = 10_u128.pow(u32::try_from(part.len()).ok()?);
        let part: u128 = part.parse().ok()?;
        let whole: u128 = whole.parse().ok()?;
        // Fractions of a wei are invalid.
        let fraction = part
            .checked_mul(unit)
            .filter(|scaled| scaled % scale == 0)?
            / scale;
        let wei = whole.checked_mul(unit)?.checked_add(fraction)?;
        (wei <= 1000 * ETHER).then_some(Self(wei))
    }
}

impl fmt::Display for Wei {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / ETHER, self.0 % ETHER);
        let part = format!("{part:018}");
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole} ETH"),
            part => write!(f, "{whole}.{part} ETH"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fee_is_a_decimal_number_with_its_unit() {
        let wei = |text| Wei::parse(text).map(|wei| wei.0);
        assert_eq!(wei("0.0002 ETH"), Some(200_000_000_000_000));
        assert_eq!(wei("200000 gwei"), Some(200_000_000_000_000));
        assert_eq!(wei("0.000000000000000001 ETH"), Some(1));
        for wrong in [
            "",
            "1",
            "1 eth",
            "ETH",
            "-1 ETH",
            "1e3 gwei",
            ". ETH",
            "0.0000000001 gwei",
            "1001 ETH",
        ] {
            assert_eq!(wei(wrong), None, "{wrong}");
        }
        assert_eq!(Wei(200_000_000_000_000).to_string(), "0.0002 ETH");
        assert_eq!(Wei(0).to_string(), "0 ETH");
        assert_eq!(Wei::parse(&Wei(1).to_string()), Some(Wei(1)));
    }
}
