//! Durations as people write them: a whole number and its unit.

use std::time::Duration;

use toml::de::DeValue;

use super::setting::{Base, Expected, Setting};

/// The units, smallest first, with their length in milliseconds.
const UNITS: [(&str, u64); 4] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60 * 1000),
    ("h", 60 * 60 * 1000),
];

/// A year: longer than anything waits, short enough that adding it to a clock never overflows.
const LONGEST_MS: u64 = 365 * 24 * 60 * 60 * 1000;

impl Setting for Duration {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        *self = match value {
            DeValue::String(text) => parse(text)?,
            DeValue::Integer(number) => parse(number.as_str())?,
            _ => return Err(FORM.into()),
        };
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        let ms = self.as_millis();
        let fits = |(_, length): &&(&str, u64)| ms.is_multiple_of(u128::from(*length));
        let (unit, length) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
        Some(format!("{}{unit}", ms / u128::from(*length)).into())
    }
}

const FORM: &str = "a duration such as `500ms`, `30s`, `15m` or `2h`";

/// Reads one.
pub fn parse(text: &str) -> Result<Duration, Expected> {
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
        .filter(|ms| *ms <= LONGEST_MS)
        .map(Duration::from_millis)
        .ok_or("a duration of at most `8760h`".into())
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
    fn what_is_no_duration_is_refused() {
        for text in ["", "s", "-5s", "1.5h", "5 s", "5d", "5S", "٣s", "1h30m"] {
            assert_eq!(parse(text).unwrap_err(), FORM, "{text}");
        }
        for text in ["8761h", "99999999999999999999h", "18446744073709551615h"] {
            assert_eq!(
                parse(text).unwrap_err(),
                "a duration of at most `8760h`",
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_duration_that_is_shown_reads_back_the_same(ms in 0..=LONGEST_MS) {
            let duration = Duration::from_millis(ms);
            let shown = duration.shown().unwrap();
            prop_assert_eq!(parse(shown.as_str().unwrap()), Ok(duration));
        }
    }
}
