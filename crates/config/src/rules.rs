//! `approval.rules`: which calls run, which need approval, and which never run. The rules of all layers apply
//! together, so that no layer can lift what another denies.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use lango_engine::{ApprovalRule, RuleAction};

use super::overlay::TrustLevel;
use super::setting::{Expected, Setting, ValueContext};

/// All rules, weakest layer first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalRules {
    /// The rules in force.
    pub rules: Vec<ApprovalRule>,
    /// Rules of an untrusted project that would allow something.
    pub ignored: Vec<ApprovalRule>,
}

/// The error text for a value that is not a list of rules.
const EXPECTED: &str =
    "a list of rules, such as `[{ action = \"allow\", tool = \"fs_write\", match = \"notes/*\" }]`";

impl Setting for ApprovalRules {
    fn assign(&mut self, value: &DeValue<'_>, context: &ValueContext<'_>) -> Result<(), Expected> {
        let DeValue::Array(items) = value else {
            return Err(EXPECTED.into());
        };
        let read = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::Table(table) => rule(table, context),
            _ => Err(EXPECTED.into()),
        };
        let rules: Vec<ApprovalRule> = items.iter().map(read).collect::<Result<_, _>>()?;
        let is_ignored = |rule: &ApprovalRule| {
            context.trust_level == TrustLevel::Untrusted && rule.action == RuleAction::Allow
        };
        let (ignored, active) = rules.into_iter().partition(is_ignored);
        self.rules.extend::<Vec<ApprovalRule>>(active);
        self.ignored.extend::<Vec<ApprovalRule>>(ignored);
        Ok(())
    }

    fn to_toml(&self) -> Option<toml::Value> {
        Some(
            self.rules
                .iter()
                .map(rule_to_toml)
                .collect::<Vec<_>>()
                .into(),
        )
    }
}

fn rule(table: &DeTable<'_>, context: &ValueContext<'_>) -> Result<ApprovalRule, Expected> {
    let mut rule = ApprovalRule {
        action: RuleAction::Ask,
        agent: None,
        tool: None,
        matching: None,
        origin: context.origin.to_string().into(),
    };
    let mut action = None;
    for (name, value) in table {
        let text = value.get_ref().as_str().filter(|text| !text.is_empty());
        let text = text
            .ok_or("rules whose fields are text that is not empty")?
            .to_owned();
        match name.get_ref().as_ref() {
            "action" => action = Some(text),
            "agent" => rule.agent = Some(text),
            "tool" => rule.tool = Some(text),
            "match" => rule.matching = Some(text),
            _ => return Err("rules with the fields `action`, `agent`, `tool` and `match`".into()),
        }
    }
    rule.action = match action.as_deref() {
        Some("allow") => RuleAction::Allow,
        Some("ask") => RuleAction::Ask,
        Some("deny") => RuleAction::Deny,
        _ => return Err("rules whose `action` is `allow`, `ask` or `deny`".into()),
    };
    Ok(rule)
}

fn rule_to_toml(rule: &ApprovalRule) -> toml::Value {
    let fields = [
        ("action", Some(rule.action.name())),
        ("agent", rule.agent.as_deref()),
        ("tool", rule.tool.as_deref()),
        ("match", rule.matching.as_deref()),
    ];
    let table: toml::Table = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
    table.into()
}
