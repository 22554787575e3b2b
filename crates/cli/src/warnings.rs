//! What a person should know before the first turn: what is missing, what is left out, what is not heard.

use crate::app::App;
use lango_core::{AgentName, Subject};
use lango_engine::{Action, Agent, Rule, narrower_command};
use lango_sandbox::Strength;

impl App {
    /// Tools that are not here on this machine, and why.
    pub fn absent_tools(&self) -> Option<String> {
        let commands = match &self.held.strength {
            Strength::Full | Strength::Degraded { .. } => None,
            Strength::None { why } => Some(format!(
                "exec, exec_bg, exec_status, exec_stop (commands cannot be held here: {why})"
            )),
        };
        let absent: Vec<String> = commands.into_iter().chain(self.mcp.absent()).collect();
        (!absent.is_empty()).then(|| absent.join("; "))
    }

    /// What a person should know before the first turn.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.tree.unmatched.is_empty() {
            let names = self.tree.unmatched.iter().map(|name| name.as_str());
            let names: Vec<&str> = names.collect();
            warnings.push(format!(
                "no agent holds these tools, so they cannot run: {}",
                names.join(", ")
            ));
        }
        match &self.held.strength {
            Strength::Full => {}
            Strength::Degraded { missing } => {
                warnings.push(format!("every command is asked for: {missing}"));
            }
            Strength::None { why } => warnings.push(format!("commands cannot run: {why}")),
        }
        warnings.extend(self.absent_remotes());
        let broken = self.skills.broken.iter();
        warnings.extend(broken.map(|skill| {
            format!(
                "the skill {} is left out: {}",
                skill.path.display(),
                skill.problem
            )
        }));
        let unheard = self.loaded.unheard();
        if !unheard.is_empty() {
            warnings.push(format!(
                "not heard, because the project's file is not trusted: {}; `lango config trust` trusts it as it is",
                unheard.join(", ")
            ));
        }
        warnings.extend(self.unheard_agents());
        let knowledge = self.knowledge.as_ref();
        warnings.extend(knowledge.and_then(|known| known.warning.clone()));
        warnings.extend(self.mcp.warnings());
        warnings.extend(self.idle_rules());
        warnings
    }

    /// Agents elsewhere that are not in the tree, and why.
    fn absent_remotes(&self) -> Vec<String> {
        let unreached = self.elsewhere.skipped();
        let is_refused = |name: &AgentName| {
            let agent = self.tree.sub_agent(name.as_str());
            !agent.is_some_and(|agent| agent.remote)
        };
        let refused = self.elsewhere.cards().into_iter();
        let refused = refused.filter(|card| is_refused(&card.name)).map(|card| {
            let mut skipped = self.tree.skipped.iter().rev();
            let skipped = skipped.find(|skipped| skipped.name == card.name);
            let reason = skipped.map(|skipped| skipped.reason.clone());
            (card.name, reason.unwrap_or_default())
        });
        let absent = unreached.into_iter().chain(refused);
        absent
            .map(|(name, reason)| format!("the remote agent `{name}` is left out: {reason}"))
            .collect()
    }

    /// The project's agent files that nobody trusts.
    pub fn unheard_agents(&self) -> Option<String> {
        let unheard = self.roster.unheard.iter();
        let names: Vec<String> = unheard.map(|path| path.display().to_string()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "not heard, because these files of the project are not trusted as they are: {}; read them, then `lango config trust`",
                names.join(", ")
            )
        })
    }

    /// Rules that allow commands by a wildcard, for `config check` and `doctor`: every turn would repeat them.
    pub fn loose_rules(&self) -> Vec<String> {
        let is_for_commands = |rule: &&Rule| {
            let mut tools = self.tools.iter().map(|tool| tool.spec());
            rule.action == Action::Allow
                && tools.any(|spec| {
                    spec.subject == Subject::Command && rule.fits_tool(spec.name.as_str())
                })
        };
        let rules = self.loaded.settings.approval.rules.rules.iter();
        let loose = rules.filter(is_for_commands).filter_map(|rule| {
            let pattern = rule.matching.as_deref()?;
            let way_out = match &rule.tool {
                None => "a `tool`, if it is not meant for commands".to_owned(),
                Some(_) => narrower_command(pattern)?,
            };
            narrower_command(pattern)?;
            Some(format!(
                "{rule} also allows options that run other programs or write files, because a wildcard stands for \
                 any of them; write {way_out}"
            ))
        });
        loose.collect()
    }

    /// Rules that fit nothing here: most likely a name is misspelt.
    fn idle_rules(&self) -> Vec<String> {
        let agents: Vec<&Agent> = std::iter::once(&self.tree.root)
            .chain(&self.tree.agents)
            .collect();
        let tools = || self.tools.iter().map(|tool| tool.spec().name.as_str());
        let rules = self.loaded.settings.approval.rules.rules.iter();
        let idle = rules.filter(|rule| {
            !agents.iter().any(|agent| rule.fits_agent(&agent.name))
                || !tools().any(|tool| rule.fits_tool(tool))
        });
        idle.map(|rule| format!("{rule} fits no agent or tool here; is a name misspelt?"))
            .collect()
    }
}
