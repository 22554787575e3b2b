//! The trait for fields that a configuration key can set and display.
//!
//! Implementations for plain types are here; special types implement the trait next to their definition.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::origin::Origin;
use super::overlay::TrustLevel;

/// A field that a key can set.
pub(super) trait Setting {
    /// Sets the field from a value, or leaves it unchanged on error.
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected>;

    /// Returns the value as TOML for display; `None` if it is not set.
    fn to_toml(&self) -> Option<toml::Value>;
}

/// A description of the accepted values: the text that follows "must be".
pub(super) type Expected = Cow<'static, str>;

/// The context of a value: what relative paths refer to, and how far its source is trusted.
pub(super) struct ValueContext<'a> {
    pub trust_level: TrustLevel,
    pub origin: &'a Origin,
    /// The directory of the file that contains the value, or the working directory.
    pub folder: &'a Path,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
}

impl ValueContext<'_> {
    /// Resolves `text` to an absolute path.
    pub(crate) fn resolve(&self, text: &str) -> Result<PathBuf, Expected> {
        let path = match (text, text.strip_prefix("~/")) {
            ("", _) => return Err("a path".into()),
            ("~", _) => self.home()?.into(),
            (_, Some(rest)) => self.home()?.join(rest),
            _ => self.folder.join(text),
        };
        // Rebuilding the path from its components normalizes `/a/./b` to `/a/b`.
        Ok(path.components().collect())
    }

    fn home(&self) -> Result<&Path, Expected> {
        self.home
            .ok_or("a path without `~`, since `HOME` is not set".into())
    }
}

impl Setting for bool {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        *self = value.as_bool().ok_or("`true` or `false`")?;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some((*self).into())
    }
}

impl Setting for Option<bool> {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        *self = Some(value.as_bool().ok_or("`true` or `false`")?);
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.map(Into::into)
    }
}

impl Setting for u32 {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        *self = value
            .as_integer()
            .and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok())
            .ok_or("a whole number from 0 to 4294967295")?;
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(i64::from(*self).into())
    }
}

impl Setting for Option<String> {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let text = value
            .as_str()
            .filter(|text| !text.is_empty())
            .ok_or("text that is not empty")?;
        *self = Some(text.into());
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.clone().map(Into::into)
    }
}

impl Setting for Option<PathBuf> {
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        *self = Some(context.resolve(value.as_str().unwrap_or_default())?);
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.as_ref()
            .map(|path| path.to_string_lossy().into_owned().into())
    }
}

impl Setting for Vec<PathBuf> {
    /// Accepts a list of paths, or a single path.
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        let resolve = |item: &DeValue<'_>| context.resolve(item.as_str().unwrap_or_default());
        *self = match value {
            DeValue::Array(items) => {
                let paths = items.iter().map(|item| resolve(item.get_ref()));
                paths.collect::<Result<_, _>>()?
            }
            other => vec![resolve(other)?],
        };
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        let paths = self.iter().map(|path| path.to_string_lossy().into_owned());
        Some(paths.collect::<Vec<_>>().into())
    }
}

impl Setting for u64 {
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        let mut number = None;
        number.assign(value, context)?;
        *self = number.unwrap_or(*self);
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(*self).to_toml()
    }
}

impl Setting for Option<u64> {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let number = value
            .as_integer()
            .and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok())
            .ok_or("a whole number, zero or more")?;
        *self = Some(number);
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.map(|number| i64::try_from(number).unwrap_or(i64::MAX).into())
    }
}

impl Setting for Option<f64> {
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let float = value
            .as_float()
            .and_then(|number| number.as_str().parse::<f64>().ok());
        let whole = value
            .as_integer()
            .and_then(|number| number.as_str().parse::<f64>().ok());
        let number = float
            .or(whole)
            .filter(|number| number.is_finite() && *number >= 0.0);
        *self = Some(number.ok_or("a number, zero or more")?);
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        self.map(Into::into)
    }
}

impl Setting for Vec<String> {
    /// Accepts a list, or comma-separated text, as in variables and flags.
    fn assign(&mut self, value: &DeValue<'_>, _: &ValueContext<'_>) -> Result<(), Expected> {
        let expected = || Expected::from("a list of names, such as `[\"openai/gpt-6.1-sol\"]`");
        let items: Vec<&str> = match value {
            DeValue::Array(items) => {
                let texts = items.iter().map(|item| item.get_ref().as_str());
                texts.collect::<Option<_>>().ok_or_else(expected)?
            }
            DeValue::String(text) => text.split(',').map(str::trim).collect(),
            _ => return Err(expected()),
        };
        *self = items
            .into_iter()
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect();
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(self.clone().into())
    }
}
