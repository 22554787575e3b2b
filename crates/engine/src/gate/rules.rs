//! The rules of the gate: which calls run, need approval, or are denied.
//!
//! A rule that denies wins over all others. Between allowing and asking, the more specific rule wins, and if both are
//! equally specific, the one that asks. If no rule matches, the risk decides: safe calls run, all others need approval.

use super::pattern::{fits, literal_text};
use super::subject::{SubjectText, canonical};
use lango_core::{
    AgentName, GuardedTarget, Inspection, Risk, SiteAccess, Text, ToolName, ToolSpec,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The rules of all configuration layers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalRules {
    rules: Vec<ApprovalRule>,
    folder: Text,
}

/// One rule. A field that is not set matches every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    pub action: RuleAction,
    /// A pattern for the name of the agent.
    pub agent: Option<String>,
    /// A pattern for the name of the tool.
    pub tool: Option<String>,
    /// A pattern for the subject of the call: its path, its command, or all arguments as JSON.
    pub matching: Option<String>,
    /// Where the rule comes from, for users.
    pub origin: Text,
}

impl ApprovalRule {
    /// Creates a rule for every call. Set the patterns to restrict it.
    pub fn new(action: RuleAction) -> Self {
        Self {
            action,
            agent: None,
            tool: None,
            matching: None,
            origin: "a rule of the program".into(),
        }
    }

    /// Restricts the rule to tools whose names match a pattern with `*` and `?`.
    #[must_use]
    pub fn for_tool(mut self, pattern: impl Into<String>) -> Self {
        self.tool = Some(pattern.into());
        self
    }
}

/// The action of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleAction {
    Allow,
    /// Asks the user, unless a grant covers the call.
    Ask,
    /// Asks the user about every call that is not safe, regardless of grants.
    AskEachTime,
    Deny,
}

/// What the rules say about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RuleDecision {
    Run,
    Ask {
        reason: Text,
        pattern: Option<Text>,
    },
    /// No rule matches, and the call changes something that can be undone. It needs approval, unless the permission
    /// mode accepts it.
    NoRule {
        reason: Text,
        pattern: Option<Text>,
    },
    Deny {
        reason: Text,
    },
}

impl ApprovalRules {
    /// Creates the rules from all layers of the configuration.
    pub fn new(rules: Vec<ApprovalRule>) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// Sets the folder in which the agents work.
    pub fn in_folder(mut self, folder: Text) -> Self {
        self.folder = folder;
        self
    }

    /// Returns the folder in which the agents work.
    pub fn folder(&self) -> &Text {
        &self.folder
    }

    pub(super) fn apply(
        &self,
        agent: &AgentName,
        spec: &ToolSpec,
        arguments: &Value,
        inspection: &Inspection,
    ) -> RuleDecision {
        let risk = spec.risk_of(arguments);
        let touches_nothing = inspection.guarded.is_none()
            && inspection.site.is_none()
            && inspection.user_only.is_none();
        if self.rules.is_empty() && risk == Risk::Safe && touches_nothing {
            return RuleDecision::Run;
        }
        let subject = SubjectText::of(spec.subject, arguments, inspection);
        let matching_rule = |action: RuleAction| {
            let fits = |rule: &&ApprovalRule| {
                rule.action == action
                    && self.fits(rule, agent, spec, &subject, (arguments, inspection))
            };
            self.rules
                .iter()
                .filter(fits)
                .max_by_key(|rule| rule.weight())
        };
        if let Some(rule) = matching_rule(RuleAction::Deny) {
            return RuleDecision::Deny {
                reason: rule.to_string().into(),
            };
        }
        // This precedes every rule that could allow the call.
        if let Some(reason) = &inspection.user_only {
            return RuleDecision::Ask {
                reason: Text::clone(reason),
                pattern: None,
            };
        }
        let is_harmless = match &inspection.site {
            Some(site) => site.is_known,
            None => risk == Risk::Safe,
        };
        if let Some(rule) = matching_rule(RuleAction::AskEachTime).filter(|_| !is_harmless) {
            return RuleDecision::Ask {
                reason: Text::clone(&rule.origin),
                pattern: None,
            };
        }
        if let Some(guarded) = &inspection.guarded {
            let allow = self.exact_allow_rule(agent, spec, guarded);
            let ask = matching_rule(RuleAction::Ask).map(ApprovalRule::weight);
            return if allow.is_some_and(|rule| Some(rule.weight()) > ask) {
                RuleDecision::Run
            } else {
                RuleDecision::Ask {
                    reason: guarded_reason(guarded),
                    pattern: None,
                }
            };
        }
        let content = inspection.content.as_ref();
        // A pattern would have to match both the path as written and the path that the links lead to.
        let offered = || {
            let is_direct = !subject.follows_links();
            is_direct.then(|| subject.offered_pattern(content).into())
        };
        match (
            matching_rule(RuleAction::Allow),
            matching_rule(RuleAction::Ask),
        ) {
            (Some(allow), Some(ask)) if allow.weight() > ask.weight() => RuleDecision::Run,
            (_, Some(ask)) => RuleDecision::Ask {
                reason: ask.to_string().into(),
                pattern: offered(),
            },
            (Some(_), None) => RuleDecision::Run,
            (None, None) if is_harmless => RuleDecision::Run,
            (None, None) if inspection.site.is_some() => RuleDecision::Ask {
                reason: inspection
                    .site
                    .as_ref()
                    .map(site_reason)
                    .unwrap_or_default(),
                pattern: offered(),
            },
            (None, None) => match risk {
                Risk::Safe => RuleDecision::Run,
                Risk::Moderate => RuleDecision::NoRule {
                    reason: "it changes something, and no rule allows it".into(),
                    pattern: offered(),
                },
                Risk::Dangerous => RuleDecision::Ask {
                    reason: "it can do harm, and no rule allows it".into(),
                    pattern: offered(),
                },
            },
        }
    }
}

impl ApprovalRules {
    /// Returns the rule that allows exactly this path. A rule with a wildcard never allows a guarded target.
    fn exact_allow_rule(
        &self,
        agent: &AgentName,
        spec: &ToolSpec,
        guarded: &GuardedTarget,
    ) -> Option<&ApprovalRule> {
        let is_exact = |rule: &ApprovalRule| {
            let exact = rule.matching.as_ref().and_then(|text| literal_text(text));
            exact.is_some_and(|path| *path == *guarded.path)
        };
        let rules = self.rules.iter().filter(|rule| {
            rule.action == RuleAction::Allow
                && rule.fits_agent(agent)
                && rule.fits_tool(spec.name.as_str())
                && is_exact(rule)
        });
        rules.max_by_key(|rule| rule.weight())
    }

    fn fits(
        &self,
        rule: &ApprovalRule,
        agent: &AgentName,
        spec: &ToolSpec,
        subject: &SubjectText,
        (arguments, inspection): (&Value, &Inspection),
    ) -> bool {
        let narrows = rule.action != RuleAction::Allow;
        // Rules that ask or deny also match the guarded path, not only the path as written.
        let target = inspection.guarded.as_ref().map(|guarded| &guarded.path);
        let matches_subject = |pattern: &String| {
            if narrows {
                subject.is_narrowed_by(pattern, arguments, &self.folder)
                    || target.is_some_and(|path| fits(pattern, path, |_| true))
            } else {
                subject.is_allowed_by(pattern)
            }
        };
        rule.fits_agent(agent)
            && rule.fits_tool(spec.name.as_str())
            && rule.matching.as_ref().is_none_or(matches_subject)
    }
}

impl RuleAction {
    /// Returns the name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask | Self::AskEachTime => "ask",
            Self::Deny => "deny",
        }
    }
}

impl ApprovalRule {
    /// Whether the rule applies to this agent.
    pub fn fits_agent(&self, agent: &AgentName) -> bool {
        matches_name(&self.agent, agent.as_str())
    }

    /// Whether the rule applies to this tool.
    pub fn fits_tool(&self, tool: &str) -> bool {
        matches_name(&self.tool, tool)
    }

    /// Returns how specific the rule is. The pattern for the subject counts most, then the tool, then the agent. A
    /// pattern without wildcards counts more than one with wildcards.
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

fn matches_name(pattern: &Option<String>, name: &str) -> bool {
    pattern
        .as_ref()
        .is_none_or(|pattern| fits(pattern, name, |_| true))
}

impl std::fmt::Display for ApprovalRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the rule {{ action = \"{}\"", self.action.name())?;
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

/// Explains why the user is asked about a site. The host comes first, because the rest may quote the page and may be
/// truncated on the screen.
fn site_reason(site: &SiteAccess) -> Text {
    let SiteAccess {
        host, url, summary, ..
    } = site;
    let unknown = match url {
        Some(_) => {
            "; the URL is not in your messages, and not a search result or link of this session"
        }
        None => "",
    };
    format!("`{host}` is not allowed: {summary}{unknown}").into()
}

fn guarded_reason(guarded: &GuardedTarget) -> Text {
    let GuardedTarget { path, reason } = guarded;
    format!("{reason}; each change of `{path}` needs approval").into()
}

/// Returns a digest of agent, tool, exact arguments, the content that the call would run, the site that it contacts, and
/// where its path leads.
pub(crate) fn call_digest(
    agent: &AgentName,
    tool: &ToolName,
    arguments: &Value,
    inspection: &Inspection,
) -> Text {
    let mut call = canonical(arguments);
    // A suffix after the end of the JSON cannot collide with a call without a content.
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
    call.extend(
        inspection
            .path
            .iter()
            .map(|path| format!(" path {}", path.target)),
    );
    let replaces = inspection
        .edit
        .iter()
        .filter_map(|edit| edit.replaces.as_ref());
    call.extend(replaces.map(|digest| format!(" replaces {digest}")));
    digest([agent.as_str(), tool.as_str(), &call]).into()
}

/// Hashes the parts with their lengths, so that different parts never give the same hash input.
pub(crate) fn digest(parts: [&str; 3]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    base16ct::lower::encode_string(&hash.finalize())
}
