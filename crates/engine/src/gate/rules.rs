//! The policy of the gate: which calls run, which are asked for, which never run.
//!
//! A rule that denies wins over all others. Between allowing and asking the more particular rule wins, and of two that
//! are equally particular the one that asks. Where no rule speaks, the risk does: what is safe runs, the rest asks.

use super::pattern::{fits, literal_text};
use super::subject::{SubjectText, canonical};
use crate::tree::Tree;
use lango_core::{
    AgentName, Grant, GuardedTarget, Inspection, Risk, SiteAccess, Subject, Text, ToolName,
    ToolSpec,
};
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

    pub(crate) fn decide(
        &self,
        agent: &AgentName,
        spec: &ToolSpec,
        arguments: &Value,
        inspection: &Inspection,
    ) -> Decision {
        let risk = spec.risk_of(arguments);
        let touches_nothing = inspection.guarded.is_none()
            && inspection.site.is_none()
            && inspection.user_only.is_none();
        if self.rules.is_empty() && risk == Risk::Safe && touches_nothing {
            return Decision::Run;
        }
        let subject = SubjectText::of(spec, arguments, inspection);
        let fitting = |action: Action| {
            let fits = |rule: &&Rule| {
                rule.action == action
                    && self.fits(rule, agent, spec, &subject, (arguments, inspection))
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
        // Before every rule that could allow it.
        if let Some(reason) = &inspection.user_only {
            return Decision::Ask {
                reason: Text::clone(reason),
                pattern: None,
            };
        }
        let is_harmless = match &inspection.site {
            Some(site) => site.is_known,
            None => risk == Risk::Safe,
        };
        if let Some(rule) = fitting(Action::AskEachTime).filter(|_| !is_harmless) {
            return Decision::Ask {
                reason: Text::clone(&rule.origin),
                pattern: None,
            };
        }
        if let Some(guarded) = &inspection.guarded {
            let allow = self.allowing_exactly(agent, spec, guarded);
            let ask = fitting(Action::Ask).map(Rule::weight);
            return if allow.is_some_and(|rule| Some(rule.weight()) > ask) {
                Decision::Run
            } else {
                Decision::Ask {
                    reason: guarded_reason(guarded),
                    pattern: None,
                }
            };
        }
        let content = inspection.content.as_ref();
        let offered = || Some(subject.offered_pattern(content).into());
        match (fitting(Action::Allow), fitting(Action::Ask)) {
            (Some(allow), Some(ask)) if allow.weight() > ask.weight() => Decision::Run,
            (_, Some(ask)) => Decision::Ask {
                reason: ask.to_string().into(),
                pattern: offered(),
            },
            (Some(_), None) => Decision::Run,
            (None, None) if is_harmless => Decision::Run,
            (None, None) if inspection.site.is_some() => Decision::Ask {
                reason: inspection
                    .site
                    .as_ref()
                    .map(site_reason)
                    .unwrap_or_default(),
                pattern: offered(),
            },
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
    /// The rule that allows this very path. What other programs act on is allowed by no wildcard.
    fn allowing_exactly(
        &self,
        agent: &AgentName,
        spec: &ToolSpec,
        guarded: &GuardedTarget,
    ) -> Option<&Rule> {
        let names_it = |rule: &Rule| {
            let exact = rule.matching.as_ref().and_then(|text| literal_text(text));
            exact.is_some_and(|path| *path == *guarded.path)
        };
        let rules = self.rules.iter().filter(|rule| {
            rule.action == Action::Allow
                && rule.fits_agent(agent)
                && rule.fits_tool(spec.name.as_str())
                && names_it(rule)
        });
        rules.max_by_key(|rule| rule.weight())
    }

    fn fits(
        &self,
        rule: &Rule,
        agent: &AgentName,
        spec: &ToolSpec,
        subject: &SubjectText,
        (arguments, inspection): (&Value, &Inspection),
    ) -> bool {
        let narrows = rule.action != Action::Allow;
        // Where a path leads counts as much as how it is written.
        let target = inspection.guarded.as_ref().map(|guarded| &guarded.path);
        let looks_so = |pattern: &String| {
            if narrows {
                subject.is_narrowed_by(pattern, arguments, &self.folder)
                    || target.is_some_and(|path| fits(pattern, path, |_| true))
            } else {
                subject.is_allowed_by(pattern)
            }
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
            Some(pattern) if pattern.contains(['*', '?', '…']) => 1,
            Some(pattern) if pattern.ends_with(" ...") => 1,
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

/// The host comes first: what follows has words of the page in it, and may be cut on a screen.
fn site_reason(site: &SiteAccess) -> Text {
    let SiteAccess {
        host, url, summary, ..
    } = site;
    let unknown = match url {
        Some(_) => {
            "; the address is in no message of yours, no search result and no link seen in this session"
        }
        None => "",
    };
    format!("`{host}` is not allowed: {summary}{unknown}").into()
}

fn guarded_reason(guarded: &GuardedTarget) -> Text {
    let GuardedTarget { path, reason } = guarded;
    format!("{reason}; `{path}` is asked for each time").into()
}

/// The grant among these that allows the call. A grant is for the tool that it was given for, but an address of a site is
/// opened under the grant of any tool for that site.
pub(crate) fn granted<'a>(
    grants: &'a [Grant],
    tree: &Tree,
    agent: &AgentName,
    spec: &ToolSpec,
    (arguments, inspection): (&Value, &Inspection),
) -> Option<&'a Grant> {
    let subject = SubjectText::of(spec, arguments, inspection);
    let opens_address = inspection
        .site
        .as_ref()
        .is_some_and(|site| site.url.is_some());
    let is_for_site = |grant: &Grant| {
        let holder = tree.agent(grant.agent.as_str());
        let tool = holder.and_then(|holder| holder.tool(grant.tool.as_str()));
        tool.is_some_and(|tool| tool.spec.subject == Subject::Site)
    };
    grants.iter().find(|grant| {
        let is_for_tool = grant.agent == *agent && grant.tool == spec.name;
        (is_for_tool || (opens_address && is_for_site(grant)))
            && subject.is_granted_by(spec.subject, &grant.pattern, inspection.content.as_ref())
    })
}

/// Stands for agent, tool, exact arguments, the content that the call would run and the site that it contacts.
pub(crate) fn call_digest(
    agent: &AgentName,
    tool: &ToolName,
    arguments: &Value,
    inspection: &Inspection,
) -> Text {
    let mut call = canonical(arguments);
    // No JSON text goes on after its end, so this is no call without a content.
    call.extend(
        inspection
            .content
            .iter()
            .map(|content| format!(" {content}")),
    );
    call.extend(
        inspection
            .site
            .iter()
            .map(|site| format!(" site {}", site.host)),
    );
    digest([agent.as_str(), tool.as_str(), &call]).into()
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
