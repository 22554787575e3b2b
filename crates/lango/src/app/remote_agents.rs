//! The remote agents of this process: their cards are fetched before the agent tree is built, and failed ones are
//! retried in the background of a long-running process.

use crate::app::vault::{Credentials, secret_of};
use lango_a2a::client::{HeaderName, RemoteConnections, RemoteSettings, RemoteTimeouts, SlowCards};
use lango_config::{A2aSettings, RemoteAgentConfig};
use lango_core::{AgentName, RemoteAgent};
use lango_engine::RemoteCard;
use lango_net::Egress;
use std::sync::Arc;

#[derive(Default)]
pub struct RemoteAgents {
    remotes: Option<RemoteConnections>,
    /// The generation of `remotes` that the tree was last built with.
    seen: u64,
}

impl RemoteAgents {
    /// Fetches the cards of all configured agents, concurrently and within a short time limit.
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
        let remotes =
            RemoteConnections::connect(agents, RemoteTimeouts::default(), egress, slow_cards).await;
        Self {
            seen: remotes.generation(),
            remotes: Some(remotes),
        }
    }

    /// Retries missing cards in the background, for a long-running process.
    pub fn retry_in_background(&mut self) {
        if let Some(remotes) = &mut self.remotes {
            remotes.retry_in_background();
        }
    }

    /// Returns whether agents have been added since the last call.
    pub fn has_changed(&mut self) -> bool {
        let now = self
            .remotes
            .as_ref()
            .map_or(0, RemoteConnections::generation);
        std::mem::replace(&mut self.seen, now) != now
    }

    /// Returns the name and description of each connected agent, for the tree.
    pub fn cards(&self) -> Vec<RemoteCard> {
        let card = |agent: &Arc<dyn RemoteAgent>| RemoteCard {
            name: agent.name().clone(),
            description: agent.description().to_owned(),
        };
        self.agents().iter().map(card).collect()
    }

    /// Returns the agents that can be called.
    pub fn agents(&self) -> Vec<Arc<dyn RemoteAgent>> {
        let connected = self.remotes.iter().flat_map(RemoteConnections::connected);
        connected
            .map(|agent| agent as Arc<dyn RemoteAgent>)
            .collect()
    }

    /// Returns the agents that cannot be called, with the reason.
    pub fn skipped(&self) -> Vec<(AgentName, String)> {
        let skipped = self.remotes.iter().flat_map(RemoteConnections::skipped);
        skipped
            .map(|skipped| (skipped.name, skipped.reason.to_string()))
            .collect()
    }
}

fn remote_settings(agent: &RemoteAgentConfig, credentials: &Arc<Credentials>) -> RemoteSettings {
    let token = agent.token_env.as_deref();
    let source = match &agent.token_env {
        Some(name) if secret_of(name).is_some() => format!("the vault secret `{name}`"),
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
