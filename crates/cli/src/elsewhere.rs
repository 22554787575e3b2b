//! Agents that run elsewhere: whose cards are read before the agent tree is built, and tried again while a process lives.

use crate::config::{A2aSettings, RemoteAgentConfig};
use crate::vault::{Credentials, secret_of};
use lango_a2a::client::{HeaderName, Patience, RemoteSettings, Remotes, SlowCards};
use lango_core::{AgentName, RemoteAgent};
use lango_engine::RemoteCard;
use lango_net::Egress;
use std::sync::Arc;

/// The remote agents of a process.
#[derive(Default)]
pub struct Elsewhere {
    remotes: Option<Remotes>,
    /// What the tree was last built with.
    seen: u64,
}

impl Elsewhere {
    /// Reads the cards of all that are configured, at once and within a short time.
    pub async fn connect(
        settings: &A2aSettings,
        credentials: &Arc<Credentials>,
        egress: &Egress,
        slow_cards: SlowCards,
    ) -> Self {
        let agents = &settings.remote_agents.0;
        if !settings.enabled || agents.is_empty() {
            return Self::default();
        }
        let agents = agents.iter();
        let agents = agents.map(|agent| remote_settings(agent, credentials));
        let (agents, egress) = (agents.collect(), egress.clone());
        let remotes = Remotes::connect(agents, Patience::default(), egress, slow_cards).await;
        Self {
            seen: remotes.generation(),
            remotes: Some(remotes),
        }
    }

    /// Goes on trying in the background: this process lives long.
    pub fn keep_trying(&mut self) {
        if let Some(remotes) = &mut self.remotes {
            remotes.retry_in_background();
        }
    }

    /// Whether there are agents now that were not there when this was last asked.
    pub fn has_changed(&mut self) -> bool {
        let now = self.remotes.as_ref().map_or(0, Remotes::generation);
        std::mem::replace(&mut self.seen, now) != now
    }

    /// What the tree has to know of them.
    pub fn cards(&self) -> Vec<RemoteCard> {
        let card = |agent: &Arc<dyn RemoteAgent>| RemoteCard {
            name: agent.name().clone(),
            description: agent.description().to_owned(),
        };
        self.agents().iter().map(card).collect()
    }

    /// Those that can be called.
    pub fn agents(&self) -> Vec<Arc<dyn RemoteAgent>> {
        let connected = self.remotes.iter().flat_map(Remotes::connected);
        connected
            .map(|agent| agent as Arc<dyn RemoteAgent>)
            .collect()
    }

    /// Those that cannot, and why.
    pub fn skipped(&self) -> Vec<(AgentName, String)> {
        let skipped = self.remotes.iter().flat_map(Remotes::skipped);
        skipped
            .map(|skipped| (skipped.name, skipped.reason.to_string()))
            .collect()
    }
}

fn remote_settings(agent: &RemoteAgentConfig, credentials: &Arc<Credentials>) -> RemoteSettings {
    let token = agent.token_env.as_deref();
    let source = match &agent.token_env {
        Some(name) if secret_of(name).is_some() => format!("`{name}` of the vault"),
        Some(name) => format!("the environment variable `{name}`"),
        None => format!("`tokenEnv` of `{}` in a2a.remoteAgents", agent.name),
    };
    RemoteSettings {
        name: AgentName::from(agent.name.as_str()),
        card_url: agent.agent_card_url.clone(),
        token: token.and_then(|setting| credentials.find(setting)),
        headers: {
            let headers = agent.headers_env.iter();
            let header = |(name, variable): &(HeaderName, String)| {
                (name.clone(), credentials.handle(variable))
            };
            headers.map(header).collect()
        },
        timeout: agent.timeout,
        masks: credentials.masks().clone(),
        token_source: source,
    }
}
