//! What holds for every request of a turn, as its first event stored it.

use crate::answer_schema::AnswerSchema;
use crate::instruction;
use lango_core::{AgentModel, AgentName, ModelSettings, Price, Text, TurnSettings};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a turn's requests are made with, besides its messages.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Setup {
    /// What memory told the turn.
    pub memory: Option<Text>,
    /// The date and the machine, in the words of the prompt.
    pub environment: Option<Text>,
    /// The schema that the answer to the user must satisfy.
    pub answer_schema: Option<AnswerSchema>,
    price: Option<Price>,
    context_tokens: Option<u64>,
    /// The models of agents that have one of their own.
    models: BTreeMap<AgentName, AgentModel>,
    settings: ModelSettings,
    /// The settings of agents that have some of their own.
    agent_settings: BTreeMap<AgentName, ModelSettings>,
}

impl Setup {
    /// What the tokens of this agent's model cost, if that is known.
    pub fn price_of(&self, agent: &AgentName) -> Option<Price> {
        let own = self.models.get(agent).map(|own| own.price);
        own.unwrap_or(self.price)
    }

    /// How many tokens this agent's model takes at once, if that is known.
    pub fn context_tokens_of(&self, agent: &AgentName) -> Option<u64> {
        let own = self.models.get(agent).map(|own| own.context_tokens);
        own.unwrap_or(self.context_tokens)
    }

    /// How this agent's model should answer.
    pub fn settings_of(&self, agent: &AgentName) -> ModelSettings {
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
            environment: environment.map(|found| instruction::environment(found, folder)),
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
