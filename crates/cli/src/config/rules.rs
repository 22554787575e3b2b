//! `approval.rules`: which calls run, which are asked for, which never run. The rules of all layers hold together, so that
//! no layer can take away what another denies.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use lango_engine::{Action, Rule};

use super::overlay::Whose;
use super::setting::{Base, Expected, Setting};

/// All rules, weakest layer first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalRules {
    /// Those that hold.
    pub rules: Vec<Rule>,
    /// Those of a project that nobody trusts yet, and that would allow something.
    pub ignored: Vec<Rule>,
}

/// What a rule looks like, for whoever wrote something else.
const EXPECTED: &str =
    "a list of rules, such as `[{ action = \"allow\", tool = \"fs_write\", match = \"notes/*\" }]`";

impl Setting for ApprovalRules {
    fn assign(&mut self, value: &DeValue<'_>, base: &Base<'_>) -> Result<(), Expected> {
        let DeValue::Array(items) = value else {
            return Err(EXPECTED.into());
        };
        let read = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::Table(table) => rule(table, base),
            _ => Err(EXPECTED.into()),
        };
        let rules: Vec<Rule> = items.iter().map(read).collect::<Result<_, _>>()?;
        let is_ignored = |rule: &Rule| base.whose == Whose::Project && rule.action == Action::Allow;
        let (ignored, held) = rules.into_iter().partition(is_ignored);
        self.rules.extend::<Vec<Rule>>(held);
        self.ignored.extend::<Vec<Rule>>(ignored);
        Ok(())
    }

    fn shown(&self) -> Option<toml::Value> {
        Some(self.rules.iter().map(shown).collect::<Vec<_>>().into())
    }
}

fn rule(table: &DeTable<'_>, base: &Base<'_>) -> Result<Rule, Expected> {
    let mut rule = Rule {
        action: Action::Ask,
        agent: None,
        tool: None,
        matching: None,
        origin: base.origin.to_string().into(),
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
        Some("allow") => Action::Allow,
        Some("ask") => Action::Ask,
        Some("deny") => Action::Deny,
        _ => return Err("rules whose `action` is `allow`, `ask` or `deny`".into()),
    };
    Ok(rule)
}

fn shown(rule: &Rule) -> toml::Value {
    let fields = [
        ("action", Some(rule.action.word())),
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
