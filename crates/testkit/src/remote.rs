//! A remote agent that says what the test says.

use futures_util::stream;
use lango_core::{
    AgentName, BoxFuture, BoxStream, RemoteAgent, RemoteAnswer, RemoteCall, RemoteError,
    RemoteEvent, RemoteThread,
};
use std::sync::{Mutex, PoisonError};

/// What a remote agent says to a call, in order. After the last it says nothing more, and does not end.
type Script = dyn Fn(&RemoteCall) -> Vec<Result<RemoteEvent, RemoteError>> + Send + Sync;

/// A remote agent for tests.
pub struct ScriptedRemote {
    name: AgentName,
    script: Box<Script>,
    calls: Mutex<Vec<RemoteCall>>,
    cancelled: Mutex<Vec<RemoteThread>>,
}

impl ScriptedRemote {
    /// One that always answers this, or fails with it.
    pub fn new(name: &str, answer: Result<&str, &str>) -> Self {
        let agent = AgentName::from(name);
        let answer = answer.map(str::to_owned).map_err(str::to_owned);
        Self::saying(name, move |_| {
            let answer = answer.clone().map_err(|detail| RemoteError {
                agent: agent.clone(),
                detail,
                is_unknown: false,
            });
            let answer = answer.map(RemoteAnswer::from);
            vec![answer.map(RemoteEvent::Answer)]
        })
    }

    /// One that says this to each call, and then is silent.
    pub fn saying(
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

    /// What it was asked.
    pub fn calls(&self) -> Vec<RemoteCall> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.clone()
    }

    /// What it was told to stop.
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
        let said = (self.script)(&call);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(call);
        Box::pin(stream::select(stream::iter(said), stream::pending()))
    }

    fn cancel<'a>(&'a self, thread: &'a RemoteThread) -> BoxFuture<'a, ()> {
        let mut cancelled = (self.cancelled.lock()).unwrap_or_else(PoisonError::into_inner);
        cancelled.push(thread.clone());
        Box::pin(std::future::ready(()))
    }
}
