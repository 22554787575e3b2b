//! Durations in configuration syntax: a whole number and its unit.

use std::time::Duration;

use toml::de::DeValue;

use super::setting::{Expected, Setting, ValueContext};

/// The units, smallest first, with their lengths in milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60 * 1000),
    ("h", 60 * 60 * 1000),
    ("d", DAY_MS),
];

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A year: longer than any timeout needs, and short enough that adding it to a clock never overflows.
const LONGEST_MS: u64 = 365 * DAY_MS;

/// A century: the longest retention period.
const LONGEST_AGE_MS: u64 = 36_500 * DAY_MS;

impl Setting for Duration {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        *self = parse(duration_text(value)?)?;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        let ms = self.as_millis();
        let fits = |(_, length): &&(&str, u64)| ms.is_multiple_of(u128::from(*length));
        let (unit, length) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
        Some(format!("{}{unit}", ms / u128::from(*length)).into())
    }
}

/// `session.lease`: how long a replica's lease on a session lasts without renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(pub Duration);

/// The shortest sensible lease: it is renewed three times before it expires.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

impl Setting for Lease {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let lease = parse(duration_text(value)?)?;
        if lease < SHORTEST_LEASE {
            return Err("`1s` or longer, such as `15s`".into());
        }
        self.0 = lease;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.0.to_toml()
    }
}

/// A maximum age; `None` means unlimited.
impl Setting for Option<Duration> {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        *self = Some(parse_age(duration_text(value)?)?);
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.and_then(|age| age.to_toml())
    }
}

const FORM: &str = "a duration such as `500ms`, `30s`, `15m`, `2h` or `30d`";

fn duration_text<'a>(value: &'a DeValue<'_>) -> Result<&'a str, Expected> {
    match value {
        DeValue::String(text) => Ok(text),
        DeValue::Integer(number) => Ok(number.as_str()),
        _ => Err(FORM.into()),
    }
}

/// Parses a duration of at most a year.
pub fn parse(text: &str) -> Result<Duration, Expected> {
    parse_up_to(text, LONGEST_MS)
}

/// Parses an age: at most a century, and never zero.
pub fn parse_age(text: &str) -> Result<Duration, Expected> {
    let age = parse_up_to(text, LONGEST_AGE_MS)?;
    if age.is_zero() {
        Err("greater than zero, such as `30d`".into())
    } else {
        Ok(age)
    }
}

fn parse_up_to(text: &str, longest_ms: u64) -> Result<Duration, Expected> {
    let unit_start = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_start);
    if unit.is_empty() && !number.is_empty() {
        return Err(
            format!("a duration with its unit, such as `{number}s` or `{number}ms`").into(),
        );
    }
    let length = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, length)| length)
        .ok_or(FORM)?;
    if number.is_empty() {
        return Err(FORM.into());
    }
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(*length))
        .filter(|ms| *ms <= longest_ms)
        .map(Duration::from_millis)
        .ok_or_else(|| format!("a duration of at most `{}d`", longest_ms / DAY_MS).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_unit_has_its_length() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("15m"), Ok(Duration::from_secs(900)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(parse("3d"), Ok(Duration::from_secs(259_200)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn a_bare_number_is_refused_with_the_form_it_should_have() {
        assert_eq!(
            parse("900").unwrap_err(),
            "a duration with its unit, such as `900s` or `900ms`"
        );
    }

    #[test]
    fn invalid_durations_are_refused() {
        for text in ["", "s", "-5s", "1.5h", "5 s", "5D", "5S", "٣s", "1h30m"] {
            assert_eq!(parse(text).unwrap_err(), FORM, "{text}");
        }
        for text in ["8761h", "99999999999999999999h", "18446744073709551615h"] {
            assert_eq!(
                parse(text).unwrap_err(),
                "a duration of at most `365d`",
                "{text}"
            );
        }
    }

    #[test]
    fn an_age_may_be_a_century_and_is_never_zero() {
        assert_eq!(parse_age("36500d").unwrap().as_secs(), 36_500 * 86_400);
        assert!(parse_age("36501d").unwrap_err().contains("36500d"));
        assert!(parse_age("0d").unwrap_err().contains("greater than zero"));
    }

    proptest! {
        #[test]
        fn a_duration_round_trips_through_toml(ms in 0..=LONGEST_MS) {
            let duration = Duration::from_millis(ms);
            let shown = duration.to_toml().unwrap();
            prop_assert_eq!(parse(shown.as_str().unwrap()), Ok(duration));
        }
    }
}
