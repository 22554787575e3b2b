//! Reads the fields of a request; a refusal names the invalid field. Both bindings use this module, so they accept the
//! same values: ProtoJSON, which allows numbers as strings and the field names of the proto definition (`task_id` for
//! `taskId`), and in queries all values as strings. `null` means that a field is absent. Unknown fields are ignored.

use super::refusal::{Refusal, excerpt};
use chrono::DateTime;
use lango_core::Timestamp;
use serde_json::{Map, Value};

/// An object of a request, with the path to it.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: &'a str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(map: &'a Map<String, Value>, path: &'a str) -> Self {
        Self { map, path }
    }

    /// Returns the path of a field.
    pub(super) fn name(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn invalid(&self, key: &str, problem: &str) -> Refusal {
        Refusal::field(self.name(key), problem)
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a Value> {
        self.value_or_null(key).filter(|value| !value.is_null())
    }

    /// Returns the value of a field, even if it is `null`.
    pub(super) fn value_or_null(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).or_else(|| self.map.get(&proto_name(key)))
    }

    /// Returns a string. An empty string counts as absent.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, Refusal> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(key, "must be a string")),
        }
    }

    pub(super) fn required_text(&self, key: &str) -> Result<&'a str, Refusal> {
        self.text(key)?
            .ok_or_else(|| self.invalid(key, "is required and must not be empty"))
    }

    /// Returns an id chosen by the client. It is stored, so its length is limited.
    pub(super) fn id(&self, key: &str) -> Result<Option<&'a str>, Refusal> {
        const MAX_BYTES: usize = 256;
        let id = self.text(key)?;
        if id.is_some_and(|id| id.len() > MAX_BYTES) {
            return Err(self.invalid(key, "must not be longer than 256 bytes"));
        }
        Ok(id)
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<&'a Map<String, Value>>, Refusal> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(_) => Err(self.invalid(key, "must be an object")),
        }
    }

    pub(super) fn list(&self, key: &str) -> Result<&'a [Value], Refusal> {
        match self.value(key) {
            None => Ok(&[]),
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(self.invalid(key, "must be an array")),
        }
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, Refusal> {
        let texts = self.list(key)?.iter().map(|value| {
            let text = value.as_str().map(str::to_owned);
            text.ok_or_else(|| self.invalid(key, "must be an array of strings"))
        });
        texts.collect()
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, Refusal> {
        match self.value(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(self.invalid(key, "must be `true` or `false`")),
        }
    }

    /// Returns a whole number within bounds.
    pub(super) fn number(&self, key: &str, min: i32, max: i32) -> Result<Option<i32>, Refusal> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        let number = match value {
            Value::Number(number) => number
                .as_i64()
                .or_else(|| number.as_f64().and_then(as_integer)),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let number = number
            .and_then(|number| i32::try_from(number).ok())
            .filter(|number| (min..=max).contains(number));
        number.map(Some).ok_or_else(|| {
            let bounds = if max == i32::MAX {
                format!("must be a whole number not below {min}")
            } else {
                format!("must be a whole number from {min} to {max}")
            };
            self.invalid(key, &bounds)
        })
    }

    pub(super) fn history(&self) -> Result<Option<usize>, Refusal> {
        let length = self.number("historyLength", 0, i32::MAX)?;
        Ok(length.and_then(|length| usize::try_from(length).ok()))
    }

    /// Returns a time, rounded up to a full millisecond, so that a filter includes nothing from before it.
    pub(super) fn time(&self, key: &str) -> Result<Option<Timestamp>, Refusal> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let time = DateTime::parse_from_rfc3339(text).map_err(|_| {
            let problem = "must be a time such as `2026-01-31T12:00:00.000Z`";
            self.invalid(key, problem)
        })?;
        let has_rest = time.timestamp_subsec_nanos() % 1_000_000 != 0;
        let millis = time.timestamp_millis() + i64::from(has_rest);
        Ok(Some(Timestamp(u64::try_from(millis).unwrap_or(0))))
    }

    /// Returns the value that belongs to one of these keywords.
    pub(super) fn keyword<T: Clone>(
        &self,
        key: &str,
        keywords: &[(&str, T)],
    ) -> Result<Option<T>, Refusal> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let keyword = keywords.iter().find(|(name, _)| *name == text);
        keyword
            .map(|(_, value)| Some(value.clone()))
            .ok_or_else(|| {
                let known: Vec<&str> = keywords.iter().map(|(name, _)| *name).collect();
                let problem = format!("is `{}`, not one of {}", excerpt(text), known.join(", "));
                self.invalid(key, &problem)
            })
    }
}

/// Returns a field's name in the proto definition.
fn proto_name(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + 2);
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

fn as_integer(number: f64) -> Option<i64> {
    let is_whole = number.fract() == 0.0 && number.abs() <= f64::from(i32::MAX);
    // The bounds were just checked.
    #[allow(clippy::cast_possible_truncation)]
    is_whole.then_some(number as i64)
}
