//! A remote agent that follows a script.

use futures_util::{StreamExt, stream};
use lango_core::{
    AgentName, BoxFuture, BoxStream, RemoteAgent, RemoteAnswer, RemoteCall, RemoteError,
    RemoteEvent, RemoteThread,
};
use std::sync::{Mutex, PoisonError};

/// Returns the events of a call's stream, in order. After the last one the stream stays open and silent.
type Script = dyn Fn(&RemoteCall) -> Vec<Result<RemoteEvent, RemoteError>> + Send + Sync;

/// A remote agent that follows a script and records its calls and cancellations.
pub struct ScriptedRemote {
    name: AgentName,
    script: Box<Script>,
    calls: Mutex<Vec<RemoteCall>>,
    cancelled: Mutex<Vec<RemoteThread>>,
}

impl ScriptedRemote {
    /// Creates an agent that always gives this answer, or fails with this error.
    pub fn new(name: &str, answer: Result<&str, &str>) -> Self {
        let agent = AgentName::from(name);
        let answer = answer.map(str::to_owned).map_err(str::to_owned);
        Self::from_fn(name, move |_| {
            let answer = answer.clone().map_err(|detail| RemoteError {
                agent: agent.clone(),
                detail,
                is_unknown: false,
            });
            let answer = answer.map(RemoteAnswer::from);
            vec![answer.map(RemoteEvent::Answer)]
        })
    }

    /// Creates an agent that computes the events of each call. The stream stays open after the last event.
    pub fn from_fn(
        name: &str,
        script: impl Fn(&RemoteCall) -> Vec<Result<RemoteEvent, RemoteError>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: AgentName::from(name),
            script: Box::new(script),
            calls: Mutex::default(),
            cancelled: Mutex::default(),
        }
    }

    /// Returns the calls it received, in order.
    pub fn calls(&self) -> Vec<RemoteCall> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.clone()
    }

    /// Returns the threads it was asked to cancel, in order.
    pub fn cancelled(&self) -> Vec<RemoteThread> {
        let cancelled = self.cancelled.lock();
        cancelled.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl RemoteAgent for ScriptedRemote {
    fn name(&self) -> &AgentName {
        &self.name
    }

    fn description(&self) -> &str {
        "Answers from elsewhere"
    }

    fn call(&self, call: RemoteCall) -> BoxStream<'_, Result<RemoteEvent, RemoteError>> {
        let events = (self.script)(&call);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(call);
        // Yields before each event, so that a concurrent reader of the turn's updates sees every one of them.
        let paced = stream::iter(events).then(|event| async {
            tokio::task::yield_now().await;
            event
        });
        Box::pin(paced.chain(stream::pending()))
    }

    fn cancel<'a>(&'a self, thread: &'a RemoteThread) -> BoxFuture<'a, ()> {
        let mut cancelled = (self.cancelled.lock()).unwrap_or_else(PoisonError::into_inner);
        cancelled.push(thread.clone());
        Box::pin(std::future::ready(()))
    }
}
