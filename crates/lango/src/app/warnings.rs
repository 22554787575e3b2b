//! Warnings before the first turn: what is missing, skipped or ignored.

use crate::app::App;
use crate::app::web;
use lango_config::redact;
use lango_core::{AgentName, RuleSubject};
use lango_engine::{Agent, ApprovalRule, RuleAction, narrower_command};
use lango_sandbox::SandboxStrength;

/// How many broken skills a warning names; the others are only counted.
const MAX_SKILLS_SHOWN: usize = 5;

impl App {
    /// Describes the tools that are unavailable on this machine, and why.
    pub fn absent_tools(&self) -> Option<String> {
        let commands = match &self.sandbox.strength {
            SandboxStrength::Full | SandboxStrength::Degraded { .. } => None,
            SandboxStrength::None { why } => Some(format!(
                "exec_bg, exec_status, exec_stop; exec runs nothing (no sandbox works here: {why})"
            )),
        };
        let has_search = self
            .tools
            .iter()
            .any(|tool| tool.spec().name == "search_web");
        let search = (!has_search).then(|| web::NO_PROVIDER.to_owned());
        let absent = commands.into_iter().chain(self.browser.absent_tools());
        let absent = absent.chain(self.mcp.absent()).chain(search);
        let absent: Vec<String> = absent.collect();
        (!absent.is_empty()).then(|| absent.join("; "))
    }

    /// Describes the sandbox in a few words, unless it is complete. `lango doctor` and the first command give
    /// details.
    pub fn sandbox_notice(&self) -> Option<&'static str> {
        match &self.sandbox.strength {
            SandboxStrength::Full => None,
            SandboxStrength::Degraded { .. } => Some(
                "every command needs approval: the sandbox is degraded (run `lango doctor` for details)",
            ),
            SandboxStrength::None { .. } => {
                Some("commands cannot run: no sandbox works here (run `lango doctor` for details)")
            }
        }
    }

    /// Returns all warnings to show before the first turn, without secrets.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.unowned_tools_warning().into_iter().collect();
        if self.workspace.policy().hide_dotfiles_in.is_some() {
            let text = "the workspace is your home folder: its files and folders whose names start with a dot are hidden from agents";
            warnings.push(text.to_owned());
        }
        warnings.extend(self.missing_remote_warnings());
        warnings.extend(self.broken_skill_warnings());
        warnings.extend(self.loaded.warnings());
        warnings.extend(self.untrusted_files_warning());
        let knowledge = self.knowledge.as_ref();
        warnings.extend(knowledge.and_then(|known| known.warning.clone()));
        warnings.extend(self.mcp.warnings());
        warnings.extend(self.unused_rule_warnings());
        let shown = warnings.iter().map(|text| redact(text).into_owned());
        shown.collect()
    }

    /// Names the tools that no agent owns, and how to give them to one.
    pub fn unowned_tools_warning(&self) -> Option<String> {
        if self.tree.unmatched.is_empty() {
            return None;
        }
        let names = self.tree.unmatched.iter().map(|name| name.as_str());
        let names: Vec<&str> = names.collect();
        let servers = self.loaded.settings.mcp.servers.keys();
        let owners = servers.filter(|id| {
            let prefix = format!("{id}_");
            names.iter().any(|name| name.starts_with(&prefix))
        });
        // With `a` and `a_b`, a tool `a_b_x` belongs to the longer one.
        let next = owners.max_by_key(|id| id.len()).map(|id| {
            format!("; run `lango config set mcp.servers.{id}.agent operator` to give them to one")
        });
        Some(format!(
            "no agent owns these tools, so they cannot run: {}{}",
            names.join(", "),
            next.unwrap_or_default()
        ))
    }

    /// Describes the first few broken skills, and why they are left out.
    fn broken_skill_warnings(&self) -> Vec<String> {
        let broken = &self.skills.broken;
        let shown = broken.iter().take(MAX_SKILLS_SHOWN);
        let shown = shown.map(|skill| {
            format!(
                "the skill {} is left out: {}",
                skill.path.display(),
                skill.problem
            )
        });
        let more = broken.len().saturating_sub(MAX_SKILLS_SHOWN);
        let rest = format!("{more} more skills are left out; run `lango skills` to list them");
        shown.chain((more > 0).then_some(rest)).collect()
    }

    /// Describes the remote agents that are not in the tree, and why.
    fn missing_remote_warnings(&self) -> Vec<String> {
        let unreached = self.remote_agents.skipped();
        let is_refused = |name: &AgentName| {
            let agent = self.tree.sub_agent(name.as_str());
            !agent.is_some_and(|agent| agent.is_remote)
        };
        let refused = self.remote_agents.cards().into_iter();
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

    /// Describes the agent files and instructions of the project that are ignored because their content is untrusted.
    pub fn untrusted_files_warning(&self) -> Option<String> {
        let untrusted_files = self.roster.untrusted_files.iter();
        let names: Vec<String> = untrusted_files
            .map(|path| path.display().to_string())
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "ignored because the current content of these project files is not trusted: {}; read them, then run `lango config trust`",
                names.join(", ")
            )
        })
    }

    /// Returns warnings about rules that allow commands by a wildcard, for `config check` and `doctor` only: before
    /// every turn they would be noise.
    pub fn wildcard_rule_warnings(&self) -> Vec<String> {
        let is_for_commands = |rule: &&ApprovalRule| {
            let mut tools = self.tools.iter().map(|tool| tool.spec());
            rule.action == RuleAction::Allow
                && tools.any(|spec| {
                    spec.subject == RuleSubject::Command && rule.fits_tool(spec.name.as_str())
                })
        };
        let rules = self.loaded.settings.approval.rules.rules.iter();
        let loose = rules.filter(is_for_commands).filter_map(|rule| {
            let pattern = rule.matching.as_deref()?;
            let narrower = match &rule.tool {
                None => "a `tool`, if it is not meant for commands".to_owned(),
                Some(_) => narrower_command(pattern)?,
            };
            narrower_command(pattern)?;
            Some(format!(
                "{rule} also allows options that run other programs or write files, because a wildcard stands for \
                 any of them; write {narrower}"
            ))
        });
        loose.collect()
    }

    /// Returns warnings about rules that match nothing, most likely because a name is misspelt.
    pub fn unused_rule_warnings(&self) -> Vec<String> {
        let agents: Vec<&Agent> = std::iter::once(&self.tree.root)
            .chain(&self.tree.agents)
            .collect();
        let tools = || self.tools.iter().map(|tool| tool.spec().name.as_str());
        let rules = self.loaded.settings.approval.rules.rules.iter();
        let idle = rules.filter(|rule| {
            !agents.iter().any(|agent| rule.fits_agent(&agent.name))
                || !tools().any(|tool| rule.fits_tool(tool))
        });
        idle.map(|rule| format!("{rule} matches no agent or tool; is a name misspelt?"))
            .collect()
    }
}
