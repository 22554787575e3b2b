//! What a field of the settings must be able to do to be a key: take a value and show one.
//!
//! The plain kinds are here; kinds with a meaning of their own implement the trait beside their type.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::origin::Origin;
use super::overlay::Whose;

/// A field that a key can set.
pub(super) trait Setting {
    /// Takes the value, or leaves the field as it was.
    fn assign(&mut self, value: &DeValue<'_>, base: &Base<'_>) -> Result<(), Expected>;

    /// The value as TOML; nothing if it is not set.
    fn shown(&self) -> Option<toml::Value>;
}

/// What would have been accepted: the words that follow "must be".
pub(super) type Expected = Cow<'static, str>;

/// Where a value stands: what a relative path is relative to, and whose word it is.
pub(super) struct Base<'a> {
    /// Who wrote it.
    pub whose: Whose,
    /// The place.
    pub origin: &'a Origin,
    /// The folder of the file that holds the value, or the working folder.
    pub folder: &'a Path,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
}

impl Base<'_> {
    /// The absolute path that `text` means here.
    pub fn resolve(&self, text: &str) -> Result<PathBuf, Expected> {
        let path = match (text, text.strip_prefix("~/")) {
            ("", _) => return Err("a path".into()),
            ("~", _) => self.home()?.into(),
            (_, Some(rest)) => self.home()?.join(rest),
            _ => self.folder.join(text),
        };
        // Taken apart and put together again, `/a/./b` is `/a/b`.
        Ok(path.components().collect())
    }

    fn home(&self) -> Result<&Path, Expected> {
        self.home
            .ok_or("a path without `~`, since `HOME` is not set".into())
    }
}

impl Setting for bool {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        *self = value.as_bool().ok_or("`true` or `false`")?;
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some((*self).into())
    }
}

impl Setting for Option<bool> {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        *self = Some(value.as_bool().ok_or("`true` or `false`")?);
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.map(Into::into)
    }
}

impl Setting for u32 {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        *self = value
            .as_integer()
            .and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok())
            .ok_or("a whole number from 0 to 4294967295")?;
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(i64::from(*self).into())
    }
}

impl Setting for Option<String> {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let text = value
            .as_str()
            .filter(|text| !text.is_empty())
            .ok_or("text that is not empty")?;
        *self = Some(text.into());
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.clone().map(Into::into)
    }
}

impl Setting for Option<PathBuf> {
    fn assign(&mut self, value: &DeValue<'_>, base: &Base<'_>) -> Result<(), Expected> {
        *self = Some(base.resolve(value.as_str().unwrap_or_default())?);
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.as_ref()
            .map(|path| path.to_string_lossy().into_owned().into())
    }
}

impl Setting for Vec<PathBuf> {
    /// A list of paths, or one alone.
    fn assign(&mut self, value: &DeValue<'_>, base: &Base<'_>) -> Result<(), Expected> {
        let resolve = |item: &DeValue<'_>| base.resolve(item.as_str().unwrap_or_default());
        *self = match value {
            DeValue::Array(items) => {
                let paths = items.iter().map(|item| resolve(item.get_ref()));
                paths.collect::<Result<_, _>>()?
            }
            other => vec![resolve(other)?],
        };
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        let paths = self.iter().map(|path| path.to_string_lossy().into_owned());
        Some(paths.collect::<Vec<_>>().into())
    }
}

impl Setting for u64 {
    fn assign(&mut self, value: &DeValue<'_>, base: &Base<'_>) -> Result<(), Expected> {
        let mut number = None;
        number.assign(value, base)?;
        *self = number.unwrap_or(*self);
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(*self).shown()
    }
}

impl Setting for Option<u64> {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
        let number = value
            .as_integer()
            .and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok())
            .ok_or("a whole number, zero or more")?;
        *self = Some(number);
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        self.map(|number| i64::try_from(number).unwrap_or(i64::MAX).into())
    }
}

impl Setting for Option<f64> {
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
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

    fn shown(&self) -> Option<toml::Value> {
        self.map(Into::into)
    }
}

impl Setting for Vec<String> {
    /// A list, or text with commas in between, as variables and flags have it.
    fn assign(&mut self, value: &DeValue<'_>, _: &Base<'_>) -> Result<(), Expected> {
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

    fn shown(&self) -> Option<toml::Value> {
        Some(self.clone().into())
    }
}
