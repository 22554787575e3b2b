//! Parses and validates the fields of an agent file.

use super::FileProblem;
use crate::capability::GENERAL_ACTIONS;
use crate::topology::{PrefixSpec, Topology, check_name};
use lango_core::{AgentName, ModelSettings, ReasoningEffort};
use lango_frontmatter::{Field, Item, Value};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The known fields.
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

const PREFIX_FIELDS: [&str; 2] = ["prefix", "capability"];

/// The maximum number of characters of a text. All texts are part of the orchestrator's instruction in every turn.
const MAX_TEXT_CHARS: usize = 1024;

/// The maximum number of items in a list.
const MAX_LIST_ITEMS: usize = 64;

/// The minimum similarity, from 0 to 1, at which a known name is suggested in place of an unknown one.
const MIN_SIMILARITY: f64 = 0.6;

/// The parsed fields, and their problems.
#[derive(Default)]
pub(super) struct FieldParser {
    lines: BTreeMap<&'static str, usize>,
    name: Option<String>,
    description: Option<String>,
    always_include: Option<bool>,
    /// Whether the file has prefixes, valid or not.
    pub has_prefixes: bool,
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

impl FieldParser {
    pub(crate) fn new(fields: Vec<Field>) -> Self {
        let mut parser = Self::default();
        for field in fields {
            parser.parse_field(field);
        }
        parser
    }

    /// Returns the line of a field, if the file has it.
    pub(crate) fn line_of(&self, field: &str) -> Option<usize> {
        self.lines.get(field).copied()
    }

    pub(crate) fn report(&mut self, line: usize, detail: impl Into<String>) {
        self.problems.push(FileProblem {
            line,
            detail: detail.into(),
        });
    }

    /// Returns the problems from top to bottom.
    pub(crate) fn into_problems(mut self) -> Vec<FileProblem> {
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }

    /// Checks the name. It comes from the file name; a `name` field may only repeat it.
    pub(crate) fn check_name(&mut self, stem: &str, line: usize) {
        match self.name.take() {
            Some(name) if name != stem => self.report(
                line,
                format!(
                    "`name` is `{}`, but the file is `{}.md`; make them the same, or leave `name` out",
                    excerpt(&name),
                    excerpt(stem)
                ),
            ),
            _ => {
                if let Err(detail) = check_name(&AgentName::from(stem)) {
                    self.report(line, format!("{detail}; rename the file"));
                }
            }
        }
    }

    /// Returns the role, without a full stop.
    pub(crate) fn description(&mut self) -> String {
        let advice = "say in a sentence what the agent is for";
        match (self.description.take(), self.line_of("description")) {
            (Some(text), line) => {
                let role = text.trim_end_matches('.').trim_end();
                if role.is_empty() {
                    self.report(
                        line.unwrap_or(1),
                        format!("`description` is empty; {advice}"),
                    );
                }
                role.to_owned()
            }
            // The field exists but was rejected.
            (None, Some(_)) => String::new(),
            (None, None) => {
                self.report(1, format!("the field `description` is missing; {advice}"));
                String::new()
            }
        }
    }

    /// Whether the agent exists even without tools. That is the default for an agent without prefixes, which only has
    /// an instruction.
    pub(crate) fn always_include(&self) -> bool {
        self.always_include.unwrap_or(self.prefixes.is_empty())
    }

    fn parse_field(&mut self, Field { name, line, value }: Field) {
        let Some(known) = FIELDS.into_iter().find(|known| *known == name) else {
            return self.report(line, unknown_field(&name, "unknown field", &FIELDS));
        };
        if let Some(first) = self.lines.get(known) {
            let detail =
                format!("the field `{known}` occurs twice, first in line {first}; remove one");
            return self.report(line, detail);
        }
        self.lines.insert(known, line);
        match known {
            "name" => self.name = self.text(known, line, value),
            "description" => self.description = self.text(known, line, value),
            "accepts" => self.accepts = self.text(known, line, value).unwrap_or_default(),
            "returns" => self.returns = self.text(known, line, value).unwrap_or_default(),
            "cannot" => self.cannot = self.text(known, line, value).unwrap_or_default(),
            "model" => self.model = self.model(line, value),
            "always_include" => self.always_include = self.boolean(known, line, value),
            "project_instructions" => {
                self.project_instructions = self.boolean(known, line, value).unwrap_or_default();
            }
            "temperature" => {
                let temperature = self.parse(known, line, value, "a number from 0 to 2");
                self.settings.temperature = temperature;
                self.check_settings(line);
            }
            "max_output_tokens" => {
                let tokens = self.parse(known, line, value, "a whole number from 1 to 1000000");
                self.settings.max_output_tokens = tokens;
                self.check_settings(line);
            }
            "reasoning_effort" => {
                let effort = self.parse(known, line, value, ReasoningEffort::NAMES);
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
                    self.has_prefixes = true;
                    let prefix = self.prefix(item);
                    self.prefixes.extend(prefix);
                }
            }
        }
    }

    /// Parses a text and joins its lines, so that it cannot imitate another entry of a list.
    fn text(&mut self, field: &str, line: usize, value: Value) -> Option<String> {
        let Value::Text { text, .. } = value else {
            let found = kind_name(&value);
            self.report(line, format!("`{field}` must be a text, found {found}"));
            return None;
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let length = text.chars().count();
        if length > MAX_TEXT_CHARS {
            let detail =
                format!("`{field}` has {length} characters; at most {MAX_TEXT_CHARS} are allowed");
            self.report(line, format!("{detail}; put more into the body"));
        }
        Some(text)
    }

    fn model(&mut self, line: usize, value: Value) -> Option<String> {
        let model = self.text("model", line, value)?;
        if model.is_empty() || model.contains(' ') {
            let detail = "`model` must be a provider and a model, such as `openai/gpt-6.1-terra`";
            self.report(line, format!("{detail}, found `{}`", excerpt(&model)));
        }
        Some(model)
    }

    fn boolean(&mut self, field: &str, line: usize, value: Value) -> Option<bool> {
        let found = match value {
            Value::Text { text, is_plain } => match (text.as_str(), is_plain) {
                ("true", true) => return Some(true),
                ("false", true) => return Some(false),
                (_, true) => format!("`{}`", excerpt(&text)),
                (_, false) => format!("the text `\"{}\"`", excerpt(&text)),
            },
            other => kind_name(&other).to_owned(),
        };
        self.report(
            line,
            format!("`{field}` must be `true` or `false`, found {found}"),
        );
        None
    }

    /// Parses a value that is written without quotes, such as a number.
    fn parse<T: FromStr>(
        &mut self,
        field: &str,
        line: usize,
        value: Value,
        expected: &str,
    ) -> Option<T> {
        let found = match value {
            Value::Text { text, .. } => match text.parse() {
                Ok(value) => return Some(value),
                Err(_) => format!("`{}`", excerpt(&text)),
            },
            other => kind_name(&other).to_owned(),
        };
        self.report(line, format!("`{field}` must be {expected}, found {found}"));
        None
    }

    /// Rejects model settings that are out of bounds, and resets them.
    fn check_settings(&mut self, line: usize) {
        if let Err(detail) = self.settings.check() {
            self.report(line, detail);
            self.settings = ModelSettings::default();
        }
    }

    fn list(&mut self, field: &str, line: usize, value: Value, example: &str) -> Vec<Item> {
        match value {
            Value::List(items) if items.len() <= MAX_LIST_ITEMS => items,
            Value::List(items) => {
                let number = items.len();
                self.report(
                    line,
                    format!("`{field}` has {number} items; at most {MAX_LIST_ITEMS} are allowed"),
                );
                Vec::new()
            }
            other => {
                let found = kind_name(&other);
                let detail =
                    format!("`{field}` must be a list, such as `{example}`, found {found}");
                self.report(line, detail);
                Vec::new()
            }
        }
    }

    /// Parses a prefix alone, or a prefix with a description of its tools.
    fn prefix(&mut self, Item { line, value }: Item) -> Option<PrefixSpec> {
        let earlier = self.problems.len();
        let (mut prefix, mut capability) = (None, None);
        match value {
            Value::Text { .. } => prefix = Some((line, self.text("prefixes", line, value)?)),
            Value::Map(fields) => {
                for Field { name, line, value } in fields {
                    let slot = match name.as_str() {
                        "prefix" => &mut prefix,
                        "capability" => &mut capability,
                        _ => {
                            let detail = unknown_field(
                                &name,
                                "`prefixes` has an unknown field",
                                &PREFIX_FIELDS,
                            );
                            self.report(line, detail);
                            continue;
                        }
                    };
                    if slot.is_some() {
                        self.report(
                            line,
                            format!("`{name}` occurs twice in one of `prefixes`; remove one"),
                        );
                        continue;
                    }
                    let text = self.text(&name, line, value).unwrap_or_default();
                    *slot = Some((line, text));
                }
            }
            Value::List(_) => {
                self.report(line, "`prefixes` must contain texts such as `search_`, or `{ prefix: search_, capability: … }`, found a list");
            }
        }
        if self.problems.len() > earlier {
            return None;
        }
        let Some((line, prefix)) = prefix else {
            self.report(
                line,
                "one of `prefixes` has no `prefix`; write `{ prefix: search_, capability: … }`",
            );
            return None;
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if prefix.is_empty() || prefix.len() > 64 || !prefix.chars().all(is_plain) {
            let detail = format!(
                "`{}` in `prefixes` cannot be the start of a tool's name: use letters, digits, `-`, `_` and `.`, and no `*`",
                excerpt(&prefix)
            );
            self.report(line, detail);
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

/// Returns the capability that the built-in topologies have for this prefix.
fn known_capability(prefix: &str) -> String {
    let topologies = Topology::BUILT_IN.into_iter().map(Topology::built_in);
    let mut known = topologies
        .flatten()
        .flat_map(|topology| topology.agents)
        .flat_map(|spec| spec.prefixes);
    let known = known.find(|entry| prefix.starts_with(&entry.prefix));
    known.map_or(GENERAL_ACTIONS.to_owned(), |entry| entry.capability)
}

fn unknown_field(name: &str, what: &str, fields: &[&str]) -> String {
    let folded = name.to_lowercase().replace('-', "_");
    let similarity = |known: &str| strsim::normalized_damerau_levenshtein(&folded, known);
    let near = fields.iter().map(|known| (similarity(known), known));
    let nearest = near.max_by(|(one, _), (other, _)| one.total_cmp(other));
    let advice = match nearest {
        Some((similarity, known)) if similarity >= MIN_SIMILARITY => {
            format!("did you mean `{known}`?")
        }
        _ => format!("the fields are {}", fields.join(", ")),
    };
    format!("{what} `{}`; {advice}", excerpt(name))
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Text { .. } => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}

/// Shortens a text from the file to one line for an error message.
fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(80).collect()
}
