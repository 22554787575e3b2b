//! A remote agent that speaks A2A.

use super::card::{Binding, Card};
use super::http::{Clients, Token};
use super::settings::Patience;
use futures_util::{StreamExt, stream};
use lango_core::{
    AgentName, BoxFuture, BoxStream, RemoteAgent, RemoteCall, RemoteError, RemoteEvent,
    RemoteThread,
};
use std::sync::Arc;

/// An agent whose card was read and can be used.
pub struct A2aAgent {
    name: AgentName,
    card: Card,
}

impl A2aAgent {
    pub(crate) fn new(
        name: AgentName,
        card: Card,
        _token: Token,
        _clients: &Arc<Clients>,
        _patience: Patience,
    ) -> Result<Self, String> {
        Ok(Self { name, card })
    }

    /// Where its calls go.
    pub fn interface_url(&self) -> &str {
        self.card.interface.url.as_str()
    }

    /// How it is spoken to.
    pub fn binding(&self) -> Binding {
        self.card.interface.binding
    }

    /// Whether its answers are streamed.
    pub fn streams(&self) -> bool {
        self.card.streams
    }
}

impl RemoteAgent for A2aAgent {
    fn name(&self) -> &AgentName {
        &self.name
    }

    fn description(&self) -> &str {
        &self.card.description
    }

    fn call(&self, _call: RemoteCall) -> BoxStream<'_, Result<RemoteEvent, RemoteError>> {
        let error = RemoteError {
            agent: self.name.clone(),
            detail: "calls come with the next change".to_owned(),
            is_unknown: false,
        };
        stream::iter([Err(error)]).boxed()
    }

    fn cancel<'a>(&'a self, _thread: &'a RemoteThread) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}
