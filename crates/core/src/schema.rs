//! JSON schemas of tool arguments, which are part of every model request.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A shared JSON schema that caches its text.
#[derive(Clone)]
pub struct Schema(Arc<Parts>);

struct Parts {
    value: Value,
    text: OnceLock<String>,
}

impl Schema {
    /// Returns the schema as JSON text.
    pub fn text(&self) -> &str {
        self.0.text.get_or_init(|| self.0.value.to_string())
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        let text = OnceLock::new();
        Self(Arc::new(Parts { value, text }))
    }
}

impl Deref for Schema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}
