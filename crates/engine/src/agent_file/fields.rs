//! What the fields of an agent file mean, and what may be wrong with them.

use super::FileProblem;
use crate::capability::GENERAL_ACTIONS;
use crate::topology::{PrefixSpec, Topology, check_name};
use lango_core::{AgentName, ModelSettings, ReasoningEffort};
use lango_frontmatter::{Field, Item, Value};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The fields there are.
const FIELDS: [&str; 13] = [
    "name",
    "description",
    "prefixes",
    "keywords",
    "accepts",
    "returns",
    "cannot",
    "always_include",
    "model",
    "temperature",
    "reasoning_effort",
    "max_output_tokens",
    "project_instructions",
];

/// The fields of a prefix.
const PREFIX_FIELDS: [&str; 2] = ["prefix", "capability"];

/// How many characters a text has at most: all of them are told to the orchestrator in every turn.
const LONGEST_TEXT: usize = 1024;

/// How many items a list has at most.
const LONGEST_LIST: usize = 64;

/// How alike two names must be, from 0 to 1, for one to be offered in place of the other.
const NEAR: f64 = 0.6;

/// The fields as far as they were read, and what was wrong with them.
#[derive(Default)]
pub(super) struct Reading {
    lines: BTreeMap<&'static str, usize>,
    name: Option<String>,
    description: Option<String>,
    always_include: Option<bool>,
    /// Whether there are prefixes, be they good or not.
    pub names_tools: bool,
    pub prefixes: Vec<PrefixSpec>,
    pub keywords: Vec<String>,
    pub accepts: String,
    pub returns: String,
    pub cannot: String,
    pub model: Option<String>,
    pub settings: ModelSettings,
    pub project_instructions: bool,
    problems: Vec<FileProblem>,
}

impl Reading {
    pub fn of(fields: Vec<Field>) -> Self {
        let mut reading = Self::default();
        for field in fields {
            reading.take(field);
        }
        reading
    }

    /// The line that a field stands in, if it is there.
    pub fn line_of(&self, field: &str) -> Option<usize> {
        self.lines.get(field).copied()
    }

    pub fn refuse(&mut self, line: usize, detail: impl Into<String>) {
        self.problems.push(FileProblem {
            line,
            detail: detail.into(),
        });
    }

    /// What was wrong, from the top to the bottom.
    pub fn into_problems(mut self) -> Vec<FileProblem> {
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }

    /// The name is that of the file, and a field can only repeat it.
    pub fn check_name(&mut self, stem: &str, line: usize) {
        match self.name.take() {
            Some(name) if name != stem => self.refuse(
                line,
                format!(
                    "`name` is `{}`, and the file is `{}.md`; make them the same, or leave `name` out",
                    shown(&name),
                    shown(stem)
                ),
            ),
            _ => {
                if let Err(detail) = check_name(&AgentName::from(stem)) {
                    self.refuse(line, format!("{detail}; rename the file"));
                }
            }
        }
    }

    /// The role, without its full stop.
    pub fn description(&mut self) -> String {
        let advice = "say in a sentence what the agent is for";
        match (self.description.take(), self.line_of("description")) {
            (Some(text), line) => {
                let role = text.trim_end_matches('.').trim_end();
                if role.is_empty() {
                    self.refuse(
                        line.unwrap_or(1),
                        format!("`description` is empty; {advice}"),
                    );
                }
                role.to_owned()
            }
            // It is there and was refused.
            (None, Some(_)) => String::new(),
            (None, None) => {
                self.refuse(1, format!("the field `description` is missing; {advice}"));
                String::new()
            }
        }
    }

    /// An agent that names no tools is there for its words.
    pub fn always_include(&self) -> bool {
        self.always_include.unwrap_or(self.prefixes.is_empty())
    }

    fn take(&mut self, Field { name, line, value }: Field) {
        let Some(known) = FIELDS.into_iter().find(|known| *known == name) else {
            return self.refuse(line, unknown(&name, "unknown field", &FIELDS));
        };
        if let Some(first) = self.lines.get(known) {
            let detail =
                format!("the field `{known}` is there twice, first in line {first}; remove one");
            return self.refuse(line, detail);
        }
        self.lines.insert(known, line);
        match known {
            "name" => self.name = self.text(known, line, value),
            "description" => self.description = self.text(known, line, value),
            "accepts" => self.accepts = self.text(known, line, value).unwrap_or_default(),
            "returns" => self.returns = self.text(known, line, value).unwrap_or_default(),
            "cannot" => self.cannot = self.text(known, line, value).unwrap_or_default(),
            "model" => self.model = self.model(line, value),
            "always_include" => self.always_include = self.truth(known, line, value),
            "project_instructions" => {
                self.project_instructions = self.truth(known, line, value).unwrap_or_default();
            }
            "temperature" => {
                let temperature = self.parsed(known, line, value, "a number from 0 to 2");
                self.settings.temperature = temperature;
                self.check_settings(line);
            }
            "max_output_tokens" => {
                let tokens = self.parsed(known, line, value, "a whole number from 1 to 1000000");
                self.settings.max_output_tokens = tokens;
                self.check_settings(line);
            }
            "reasoning_effort" => {
                let effort = self.parsed(known, line, value, ReasoningEffort::WORDS);
                self.settings.reasoning_effort = effort;
            }
            "keywords" => {
                let items = self.list(known, line, value, "[invoice, receipt]");
                for Item { line, value } in items {
                    let keyword = self.text(known, line, value);
                    self.keywords
                        .extend(keyword.filter(|text| !text.is_empty()));
                }
            }
            _ => {
                for item in self.list(known, line, value, "[search_, rag_]") {
                    self.names_tools = true;
                    let prefix = self.prefix(item);
                    self.prefixes.extend(prefix);
                }
            }
        }
    }

    /// A text, on one line so that it cannot pose as another entry of a list.
    fn text(&mut self, field: &str, line: usize, value: Value) -> Option<String> {
        let Value::Text { text, .. } = value else {
            let found = kind(&value);
            self.refuse(line, format!("`{field}` must be a text, found {found}"));
            return None;
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let length = text.chars().count();
        if length > LONGEST_TEXT {
            let detail =
                format!("`{field}` has {length} characters, {LONGEST_TEXT} at most are allowed");
            self.refuse(line, format!("{detail}; put more into the body"));
        }
        Some(text)
    }

    fn model(&mut self, line: usize, value: Value) -> Option<String> {
        let model = self.text("model", line, value)?;
        if model.is_empty() || model.contains(' ') {
            let detail = "`model` must be a provider and a model, such as `openai/gpt-6.1-terra`";
            self.refuse(line, format!("{detail}, found `{}`", shown(&model)));
        }
        Some(model)
    }

    fn truth(&mut self, field: &str, line: usize, value: Value) -> Option<bool> {
        let found = match value {
            Value::Text { text, is_plain } => match (text.as_str(), is_plain) {
                ("true", true) => return Some(true),
                ("false", true) => return Some(false),
                (_, true) => format!("`{}`", shown(&text)),
                (_, false) => format!("the text `\"{}\"`", shown(&text)),
            },
            other => kind(&other).to_owned(),
        };
        self.refuse(
            line,
            format!("`{field}` must be `true` or `false`, found {found}"),
        );
        None
    }

    /// A value that is written without quotes, such as a number.
    fn parsed<T: FromStr>(
        &mut self,
        field: &str,
        line: usize,
        value: Value,
        expected: &str,
    ) -> Option<T> {
        let found = match value {
            Value::Text { text, .. } => match text.parse() {
                Ok(value) => return Some(value),
                Err(_) => format!("`{}`", shown(&text)),
            },
            other => kind(&other).to_owned(),
        };
        self.refuse(line, format!("`{field}` must be {expected}, found {found}"));
        None
    }

    /// Refuses a setting of the model that is out of its bounds, and forgets it.
    fn check_settings(&mut self, line: usize) {
        if let Err(detail) = self.settings.check() {
            self.refuse(line, detail);
            self.settings = ModelSettings::default();
        }
    }

    fn list(&mut self, field: &str, line: usize, value: Value, example: &str) -> Vec<Item> {
        match value {
            Value::List(items) if items.len() <= LONGEST_LIST => items,
            Value::List(items) => {
                let number = items.len();
                self.refuse(
                    line,
                    format!("`{field}` has {number} items, {LONGEST_LIST} at most are allowed"),
                );
                Vec::new()
            }
            other => {
                let found = kind(&other);
                let detail =
                    format!("`{field}` must be a list, such as `{example}`, found {found}");
                self.refuse(line, detail);
                Vec::new()
            }
        }
    }

    /// A prefix alone, or one with the words for what its tools do.
    fn prefix(&mut self, Item { line, value }: Item) -> Option<PrefixSpec> {
        let earlier = self.problems.len();
        let (mut prefix, mut capability) = (None, None);
        match value {
            Value::Text { .. } => prefix = Some((line, self.text("prefixes", line, value)?)),
            Value::Map(fields) => {
                for Field { name, line, value } in fields {
                    let place = match name.as_str() {
                        "prefix" => &mut prefix,
                        "capability" => &mut capability,
                        _ => {
                            let detail =
                                unknown(&name, "`prefixes` has an unknown field", &PREFIX_FIELDS);
                            self.refuse(line, detail);
                            continue;
                        }
                    };
                    if place.is_some() {
                        self.refuse(
                            line,
                            format!("`{name}` is there twice in one of `prefixes`; remove one"),
                        );
                        continue;
                    }
                    let text = self.text(&name, line, value).unwrap_or_default();
                    *place = Some((line, text));
                }
            }
            Value::List(_) => {
                self.refuse(line, "`prefixes` must hold texts such as `search_`, or `{ prefix: search_, capability: … }`, found a list");
            }
        }
        if self.problems.len() > earlier {
            return None;
        }
        let Some((line, prefix)) = prefix else {
            self.refuse(
                line,
                "one of `prefixes` has no `prefix`; write `{ prefix: search_, capability: … }`",
            );
            return None;
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if prefix.is_empty() || prefix.len() > 64 || !prefix.chars().all(is_plain) {
            let detail = format!(
                "`{}` in `prefixes` cannot begin a tool's name: use letters, digits, `-`, `_` and `.`, and no `*`",
                shown(&prefix)
            );
            self.refuse(line, detail);
            return None;
        }
        let capability = capability.map(|(_, text)| text);
        let capability = capability.filter(|text| !text.is_empty());
        Some(PrefixSpec {
            capability: capability.unwrap_or_else(|| known_capability(&prefix)),
            prefix,
        })
    }
}

/// The words that the built-in topologies have for tools of this prefix.
fn known_capability(prefix: &str) -> String {
    let topologies = Topology::BUILT_IN.into_iter().map(Topology::built_in);
    let mut known = topologies
        .flatten()
        .flat_map(|topology| topology.agents)
        .flat_map(|spec| spec.prefixes);
    let known = known.find(|entry| prefix.starts_with(&entry.prefix));
    known.map_or(GENERAL_ACTIONS.to_owned(), |entry| entry.capability)
}

fn unknown(name: &str, what: &str, fields: &[&str]) -> String {
    let folded = name.to_lowercase().replace('-', "_");
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(&folded, known);
    let near = fields.iter().map(|known| (likeness(known), known));
    let nearest = near.max_by(|(one, _), (other, _)| one.total_cmp(other));
    let advice = match nearest {
        Some((likeness, known)) if likeness >= NEAR => format!("did you mean `{known}`?"),
        _ => format!("there are {}", fields.join(", ")),
    };
    format!("{what} `{}`; {advice}", shown(name))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Text { .. } => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}

/// The beginning of something that was written, on one line.
fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(80).collect()
}
