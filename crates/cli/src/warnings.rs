//! What a person should know before the first turn: what is missing, what is left out, what is not heard.

use crate::app::App;
use crate::redact::redact;
use crate::web;
use lango_core::{AgentName, Subject};
use lango_engine::{Action, Agent, Rule, narrower_command};
use lango_sandbox::Strength;

/// How many skills that are left out a warning names before it only counts the rest.
const MOST_SKILLS_SHOWN: usize = 5;

impl App {
    /// Tools that are not here on this machine, and why.
    pub fn absent_tools(&self) -> Option<String> {
        let commands = match &self.held.strength {
            Strength::Full | Strength::Degraded { .. } => None,
            Strength::None { why } => Some(format!(
                "exec_bg, exec_status, exec_stop; exec runs nothing (commands cannot be held here: {why})"
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

    /// How well commands are confined, in a few words, unless all is well. `lango doctor` says more, and so does the
    /// first command that is wanted.
    pub fn sandbox_notice(&self) -> Option<&'static str> {
        match &self.held.strength {
            Strength::Full => None,
            Strength::Degraded { .. } => {
                Some("each command is asked for: the sandbox is degraded (`lango doctor` says why)")
            }
            Strength::None { .. } => {
                Some("commands cannot run: no sandbox works here (`lango doctor` says why)")
            }
        }
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
        if self.workspace.policy().hide_dotfiles_in.is_some() {
            let text = "the workspace is your home folder: agents do not see its files and folders whose names begin with a dot";
            warnings.push(text.to_owned());
        }
        warnings.extend(self.absent_remotes());
        warnings.extend(self.broken_skills());
        warnings.extend(self.loaded.warnings());
        warnings.extend(self.unheard_agents());
        let knowledge = self.knowledge.as_ref();
        warnings.extend(knowledge.and_then(|known| known.warning.clone()));
        warnings.extend(self.mcp.warnings());
        warnings.extend(self.idle_rules());
        let shown = warnings.iter().map(|text| redact(text).into_owned());
        shown.collect()
    }

    /// Skills that are left out, and why; the first few of them.
    fn broken_skills(&self) -> Vec<String> {
        let broken = &self.skills.broken;
        let shown = broken.iter().take(MOST_SKILLS_SHOWN);
        let shown = shown.map(|skill| {
            format!(
                "the skill {} is left out: {}",
                skill.path.display(),
                skill.problem
            )
        });
        let more = broken.len().saturating_sub(MOST_SKILLS_SHOWN);
        let rest = format!("{more} more skills are left out; `lango skills` lists them");
        shown.chain((more > 0).then_some(rest)).collect()
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
