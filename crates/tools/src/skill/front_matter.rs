//! The front matter of a `SKILL.md`, checked by the rules of the format: every field is a text, except `metadata`,
//! which is a map of texts.

use lango_core::Trust;
use lango_frontmatter::{Field, FrontMatterError, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of characters of each field.
const MAX_NAME: usize = 64;
pub(super) const MAX_DESCRIPTION: usize = 1024;
const MAX_COMPATIBILITY: usize = 500;

/// The fields of the front matter that lango uses. The other fields are only checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Untrusted if `metadata` says so, which is the case for skills written by an agent with an untrusted context.
    pub(crate) trust: Trust,
}

/// The field of `metadata` with the trust label, and the value that lango writes.
pub(super) const TRUST_FIELD: &str = "lango-trust";
pub(super) const UNTRUSTED: &str = "untrusted";

impl FrontMatter {
    /// Reads and checks the front matter at the start of a `SKILL.md`. The error describes the problem.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (yaml, _body) = lango_frontmatter::split(text).map_err(explain)?;
        let fields = lango_frontmatter::fields(yaml).map_err(explain)?;
        let mut fields = Fields::check(fields)?;
        let name = fields.required("name")?.trim().to_owned();
        check_name(&name)?;
        let description = fields.required("description")?;
        if description.trim().is_empty() {
            return Err(
                "`description` is empty; say what the skill does and when to use it".into(),
            );
        }
        check_length("description", &description, MAX_DESCRIPTION)?;
        if let Some(compatibility) = fields.texts.get("compatibility") {
            check_length("compatibility", compatibility, MAX_COMPATIBILITY)?;
        }
        Ok(Self {
            name,
            description: description.trim().to_owned(),
            trust: fields.trust,
        })
    }
}

/// Checks a name by the rules of the format.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let problem = if name.is_empty() {
        "is empty"
    } else if name.chars().count() > MAX_NAME {
        "is longer than 64 characters"
    } else if name.chars().any(char::is_uppercase) {
        "has capital letters"
    } else if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        "has other characters than the letters a to z, digits and hyphens"
    } else if name.starts_with('-') || name.ends_with('-') {
        "starts or ends with a hyphen"
    } else if name.contains("--") {
        "has two hyphens in a row"
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(80).collect();
    Err(format!("the name {shown:?} {problem}"))
}

pub(super) fn check_length(field: &str, text: &str, longest: usize) -> Result<(), String> {
    let length = text.chars().count();
    if length > longest {
        return Err(format!(
            "`{field}` has {length} characters; at most {longest} are allowed"
        ));
    }
    Ok(())
}

/// The fields of the front matter.
struct Fields {
    texts: BTreeMap<String, String>,
    trust: Trust,
}

impl Fields {
    fn check(found: Vec<Field>) -> Result<Self, String> {
        let mut fields = Self {
            texts: BTreeMap::new(),
            trust: Trust::Trusted,
        };
        let mut seen = BTreeSet::new();
        for Field { name, value, .. } in found {
            if !seen.insert(name.clone()) {
                return Err(format!("the field `{name}` occurs twice"));
            }
            match name.as_str() {
                "name" | "description" | "license" | "compatibility" | "allowed-tools" => {
                    let text = text_of(&name, value)?;
                    fields.texts.insert(name, text);
                }
                "metadata" => fields.trust = trust_in_metadata(value)?,
                _ => {
                    return Err(format!(
                        "it has an unknown field {name:?}; put custom fields below `metadata`"
                    ));
                }
            }
        }
        Ok(fields)
    }

    fn required(&mut self, name: &str) -> Result<String, String> {
        self.texts
            .remove(name)
            .ok_or_else(|| format!("the field `{name}` is missing"))
    }
}

fn text_of(field: &str, value: Value) -> Result<String, String> {
    match value {
        Value::Text { text, .. } => Ok(text),
        Value::List(_) | Value::Map(_) => Err(format!("the field {field:?} is not a text")),
    }
}

/// Checks `metadata` and returns its trust label: untrusted if the field is present, whatever its value.
fn trust_in_metadata(value: Value) -> Result<Trust, String> {
    let Value::Map(fields) = value else {
        return Err("the field `metadata` is not a map of `name: text`".into());
    };
    let mut seen = BTreeSet::new();
    let mut trust = Trust::Trusted;
    for Field { name, value, .. } in fields {
        text_of(&name, value)?;
        if name == TRUST_FIELD {
            trust = Trust::Untrusted;
        }
        if !seen.insert(name.clone()) {
            return Err(format!("the field {name:?} occurs twice in `metadata`"));
        }
    }
    Ok(trust)
}

/// Formats the error, with its line if it has one.
pub(super) fn explain(error: FrontMatterError) -> String {
    match error.line {
        Some(line) => format!("{error} (line {line})"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_makes_the_parser_panic_or_hang() {
        // All combinations of three characters with a meaning in YAML, inside of a field and on separate lines.
        let parts = [
            "-", ":", " ", "\n", "{", "[", "&a", "*a", "!t", "|", ">", "\"", "'", "#", "%", "?",
            ",", "x", "\t", "\u{0}", "]", "}",
        ];
        for first in parts {
            for second in parts {
                for third in parts {
                    let text = format!("---\nname: {first}{second}{third}\n{third}{first}\n---\n");
                    let _ = FrontMatter::read(&text);
                    let text = format!("---\n{first}{second}\n{third}\n---\n");
                    assert!(FrontMatter::read(&text).is_err());
                }
            }
        }
    }
}
