//! Validates model settings and merges an agent's settings with the general ones.

use crate::{ModelSettings, ReasoningEffort};
use std::ops::RangeInclusive;
use std::str::FromStr;

impl ModelSettings {
    /// The allowed temperatures.
    pub const TEMPERATURES: RangeInclusive<f64> = 0.0..=2.0;
    /// The allowed output limits.
    pub const OUTPUT_TOKENS: RangeInclusive<u64> = 1..=1_000_000;

    /// Returns these settings, with those of `general` for everything that is not set.
    pub fn or(self, general: Self) -> Self {
        Self {
            temperature: self.temperature.or(general.temperature),
            reasoning_effort: self.reasoning_effort.or(general.reasoning_effort),
            max_output_tokens: self.max_output_tokens.or(general.max_output_tokens),
        }
    }

    /// Validates the settings. The error names the setting as topologies and agent files spell it.
    pub fn check(&self) -> Result<(), String> {
        if let Some(temperature) = self.temperature
            && !Self::TEMPERATURES.contains(&temperature)
        {
            return Err(format!(
                "`temperature` is {temperature}; it must be from 0 to 2"
            ));
        }
        if let Some(tokens) = self.max_output_tokens
            && !Self::OUTPUT_TOKENS.contains(&tokens)
        {
            return Err(format!(
                "`max_output_tokens` is {tokens}; it must be from 1 to 1000000"
            ));
        }
        Ok(())
    }
}

impl std::fmt::Display for ModelSettings {
    /// Writes the settings separated by commas; nothing if none is set.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            self.temperature
                .map(|temperature| format!("temperature {temperature}")),
            self.reasoning_effort
                .map(|effort| format!("reasoning effort {}", effort.name())),
            self.max_output_tokens
                .map(|tokens| format!("at most {tokens} output tokens")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}

impl ReasoningEffort {
    /// All efforts, in ascending order.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
    ];

    /// The list of all names for error messages.
    pub const NAMES: &str = "`none`, `minimal`, `low`, `medium` or `high`";
}

impl FromStr for ReasoningEffort {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let mut all = Self::ALL.into_iter();
        all.find(|effort| effort.name() == name).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_settings_override_the_general_ones_one_by_one() {
        let own = ModelSettings {
            temperature: Some(0.0),
            ..ModelSettings::default()
        };
        let general = ModelSettings {
            temperature: Some(1.0),
            reasoning_effort: Some(ReasoningEffort::Low),
            max_output_tokens: None,
        };
        let expected = ModelSettings {
            temperature: Some(0.0),
            ..general
        };
        assert_eq!(own.or(general), expected);
        assert_eq!(ModelSettings::default().or(general), general);
        assert_eq!(
            own.or(general).to_string(),
            "temperature 0, reasoning effort low"
        );
    }

    #[test]
    fn settings_out_of_bounds_are_rejected_with_the_bounds() {
        let with = |temperature: f64, tokens: u64| ModelSettings {
            temperature: Some(temperature),
            reasoning_effort: None,
            max_output_tokens: Some(tokens),
        };
        assert_eq!(with(2.0, 1).check(), Ok(()));
        assert_eq!(with(0.0, 1_000_000).check(), Ok(()));
        for (temperature, tokens, named) in [
            (2.1, 1, "`temperature` is 2.1"),
            (-0.1, 1, "`temperature` is -0.1"),
            (f64::NAN, 1, "`temperature` is NaN"),
            (1.0, 0, "`max_output_tokens` is 0"),
            (1.0, 1_000_001, "from 1 to 1000000"),
        ] {
            let error = with(temperature, tokens).check().unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn every_effort_is_parsed_from_its_name() {
        for effort in ReasoningEffort::ALL {
            assert_eq!(effort.name().parse(), Ok(effort));
            assert!(ReasoningEffort::NAMES.contains(effort.name()));
        }
        assert_eq!("max".parse::<ReasoningEffort>(), Err(()));
    }
}
