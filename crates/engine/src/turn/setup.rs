//! The settings of all requests of a turn, read from its first event.

use crate::answer_schema::AnswerSchema;
use crate::instruction;
use lango_core::{AgentModel, AgentName, ModelSettings, Price, Text, TurnSettings};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The parts of a turn's requests other than the messages.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Setup {
    /// The text that memory supplied.
    pub memory: Option<Text>,
    /// The date, the machine and the permission mode, as rendered for the prompt.
    pub environment: Option<Text>,
    /// The schema that the answer to the user must match.
    pub answer_schema: Option<AnswerSchema>,
    price: Option<Price>,
    context_tokens: Option<u64>,
    /// The models of agents that have their own.
    models: BTreeMap<AgentName, AgentModel>,
    settings: ModelSettings,
    /// The complete settings of agents that override some of the general ones.
    agent_settings: BTreeMap<AgentName, ModelSettings>,
}

impl Setup {
    /// Returns the price of this agent's model, if it is known.
    pub(crate) fn price_of(&self, agent: &AgentName) -> Option<Price> {
        let own = self.models.get(agent).map(|own| own.price);
        own.unwrap_or(self.price)
    }

    /// Returns the context window of this agent's model in tokens, if it is known.
    pub(crate) fn context_tokens_of(&self, agent: &AgentName) -> Option<u64> {
        let own = self.models.get(agent).map(|own| own.context_tokens);
        own.unwrap_or(self.context_tokens)
    }

    /// Returns the model settings of this agent.
    pub(crate) fn settings_of(&self, agent: &AgentName) -> ModelSettings {
        let own = self.agent_settings.get(agent).copied();
        own.unwrap_or(self.settings)
    }
}

impl From<&TurnSettings> for Setup {
    fn from(stored: &TurnSettings) -> Self {
        let environment = stored.environment.as_ref();
        let folder = stored.folder.as_deref().unwrap_or_default();
        Self {
            memory: stored.memory.clone(),
            environment: instruction::environment(environment, folder, stored.mode),
            answer_schema: (stored.answer_schema.as_ref())
                .map(|schema| AnswerSchema::from(Arc::clone(schema))),
            price: stored.price,
            context_tokens: stored.context_tokens,
            models: stored.models.clone(),
            settings: stored.model_settings,
            agent_settings: stored.agent_model_settings.clone(),
        }
    }
}
