//! The policy of the gate: which calls run, which are asked for, which never run.
//!
//! A rule that denies wins over all others. Between allowing and asking the more particular rule wins, and of two that
//! are equally particular the one that asks. Where no rule speaks, the risk does: what is safe runs, the rest asks.

use super::pattern::fits;
use super::subject::{SubjectText, canonical};
use lango_core::{AgentName, Grant, Risk, Text, ToolName, ToolSpec};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// All rules that hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    folder: Text,
}

/// One rule. A field that is not set fits every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What happens to a call that fits.
    pub action: Action,
    /// A pattern over the agent's name.
    pub agent: Option<String>,
    /// A pattern over the tool's name.
    pub tool: Option<String>,
    /// A pattern over what stands for the arguments: the path, the command, or all of them as JSON.
    pub matching: Option<String>,
    /// Where it comes from, for people.
    pub origin: Text,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It runs.
    Allow,
    /// A person is asked, unless one has answered for such calls before.
    Ask,
    /// A person is asked about every single call that is not safe, whatever was allowed before.
    AskEachTime,
    /// It does not run.
    Deny,
}

/// What the gate does with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Run,
    Ask { reason: Text, pattern: Option<Text> },
    Deny { reason: Text },
}

impl Rules {
    /// These rules, from every layer of the configuration.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// The same for agents that work in this folder.
    pub fn in_folder(mut self, folder: Text) -> Self {
        self.folder = folder;
        self
    }

    /// The folder in which the agents work.
    pub fn folder(&self) -> &Text {
        &self.folder
    }

    pub(crate) fn decide(&self, agent: &AgentName, spec: &ToolSpec, arguments: &Value) -> Decision {
        let risk = spec.risk_of(arguments);
        if self.rules.is_empty() && risk == Risk::Safe {
            return Decision::Run;
        }
        let subject = SubjectText::of(spec, arguments);
        let fitting = |action: Action| {
            let fits = |rule: &&Rule| {
                rule.action == action && self.fits(rule, agent, spec, &subject, arguments)
            };
            self.rules
                .iter()
                .filter(fits)
                .max_by_key(|rule| rule.weight())
        };
        if let Some(rule) = fitting(Action::Deny) {
            return Decision::Deny {
                reason: rule.to_string().into(),
            };
        }
        if let Some(rule) = fitting(Action::AskEachTime).filter(|_| risk > Risk::Safe) {
            return Decision::Ask {
                reason: Text::clone(&rule.origin),
                pattern: None,
            };
        }
        let offered = || Some(subject.offered_pattern().into());
        match (fitting(Action::Allow), fitting(Action::Ask)) {
            (Some(allow), Some(ask)) if allow.weight() > ask.weight() => Decision::Run,
            (_, Some(ask)) => Decision::Ask {
                reason: ask.to_string().into(),
                pattern: offered(),
            },
            (Some(_), None) => Decision::Run,
            (None, None) => match risk {
                Risk::Safe => Decision::Run,
                Risk::Moderate => Decision::Ask {
                    reason: "it changes something, and no rule allows it".into(),
                    pattern: offered(),
                },
                Risk::Dangerous => Decision::Ask {
                    reason: "it can do harm, and no rule allows it".into(),
                    pattern: offered(),
                },
            },
        }
    }
}

impl Rules {
    fn fits(
        &self,
        rule: &Rule,
        agent: &AgentName,
        spec: &ToolSpec,
        subject: &SubjectText,
        arguments: &Value,
    ) -> bool {
        let narrows = rule.action != Action::Allow;
        let looks_so = |pattern: &String| match narrows {
            false => subject.is_allowed_by(pattern),
            true => subject.is_narrowed_by(pattern, arguments, &self.folder),
        };
        rule.fits_agent(agent)
            && rule.fits_tool(spec.name.as_str())
            && rule.matching.as_ref().is_none_or(looks_so)
    }
}

impl Action {
    /// The word for it in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask | Self::AskEachTime => "ask",
            Self::Deny => "deny",
        }
    }
}

impl Rule {
    /// Whether it speaks of this agent.
    pub fn fits_agent(&self, agent: &AgentName) -> bool {
        named(&self.agent, agent.as_str())
    }

    /// Whether it speaks of this tool.
    pub fn fits_tool(&self, tool: &str) -> bool {
        named(&self.tool, tool)
    }

    /// How particular it is: what it says of the arguments counts most, then the tool, then the agent; a name without a
    /// wildcard counts more than one with.
    fn weight(&self) -> u32 {
        let exact = |pattern: &Option<String>| match pattern {
            None => 0,
            Some(pattern) if pattern.contains(['*', '?']) => 1,
            Some(_) => 2,
        };
        9 * exact(&self.matching) + 3 * exact(&self.tool) + exact(&self.agent)
    }
}

fn named(pattern: &Option<String>, name: &str) -> bool {
    pattern
        .as_ref()
        .is_none_or(|pattern| fits(pattern, name, |_| true))
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the rule {{ action = \"{}\"", self.action.word())?;
        for (name, value) in [
            ("agent", &self.agent),
            ("tool", &self.tool),
            ("match", &self.matching),
        ] {
            if let Some(value) = value {
                write!(f, ", {name} = {value:?}")?;
            }
        }
        write!(f, " }} of {}", self.origin)
    }
}

/// The grant among these that allows the call.
pub(crate) fn granted<'a>(
    grants: &'a [Grant],
    agent: &AgentName,
    spec: &ToolSpec,
    arguments: &Value,
) -> Option<&'a Grant> {
    let subject = SubjectText::of(spec, arguments);
    grants.iter().find(|grant| {
        grant.agent == *agent && grant.tool == spec.name && subject.is_allowed_by(&grant.pattern)
    })
}

/// Stands for agent, tool and exact arguments.
pub(crate) fn call_digest(agent: &AgentName, tool: &ToolName, arguments: &Value) -> Text {
    digest([agent.as_str(), tool.as_str(), &canonical(arguments)]).into()
}

/// The same for the same parts, and for no others.
pub(crate) fn digest(parts: [&str; 3]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let bytes = hash.finalize();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
