//! The keys for model parameters: temperature, reasoning effort, output limit.

use super::setting::{Expected, Setting, ValueContext};
use super::settings::AgentSettings;
use lango_core::{ModelSettings, ReasoningEffort};
use toml::de::DeValue;

/// `agent.temperature`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Temperature(pub f64);

/// `agent.maxOutputTokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputTokens(pub u64);

impl AgentSettings {
    /// Returns the parameters of every model call whose agent does not set its own.
    pub fn model_settings(&self) -> ModelSettings {
        ModelSettings {
            temperature: self.temperature.map(|Temperature(temperature)| temperature),
            reasoning_effort: self.reasoning_effort,
            max_output_tokens: self.max_output_tokens.map(|OutputTokens(tokens)| tokens),
        }
    }
}

impl Setting for Option<Temperature> {
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        const EXPECTED: &str = "a number from 0 to 2";
        let mut number: Option<f64> = None;
        number.assign(value, context).map_err(|_| EXPECTED)?;
        let number = number.filter(|number| ModelSettings::TEMPERATURES.contains(number));
        *self = Some(Temperature(number.ok_or(EXPECTED)?));
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.map(|Temperature(temperature)| temperature.into())
    }
}

impl Setting for Option<OutputTokens> {
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        const EXPECTED: &str = "a whole number from 1 to 1000000";
        let mut number: Option<u64> = None;
        number.assign(value, context).map_err(|_| EXPECTED)?;
        let number = number.filter(|number| ModelSettings::OUTPUT_TOKENS.contains(number));
        *self = Some(OutputTokens(number.ok_or(EXPECTED)?));
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.map(|OutputTokens(tokens)| i64::try_from(tokens).unwrap_or(i64::MAX).into())
    }
}

impl Setting for Option<ReasoningEffort> {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let effort = value.as_str().and_then(|word| word.parse().ok());
        *self = Some(effort.ok_or(ReasoningEffort::NAMES)?);
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.map(|effort| effort.name().into())
    }
}
