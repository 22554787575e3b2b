//! A remote agent that answers what the test says.

use lango_core::{AgentName, BoxFuture, RemoteAgent, RemoteError, SessionId, Text};

/// A remote agent for tests.
pub struct ScriptedRemote {
    name: AgentName,
    answer: Result<String, String>,
}

impl ScriptedRemote {
    /// One that always answers this, or fails with it.
    pub fn new(name: &str, answer: Result<&str, &str>) -> Self {
        Self {
            name: AgentName::from(name),
            answer: answer.map(str::to_owned).map_err(str::to_owned),
        }
    }
}

impl RemoteAgent for ScriptedRemote {
    fn name(&self) -> &AgentName {
        &self.name
    }

    fn description(&self) -> &str {
        "Answers from elsewhere"
    }

    fn call<'a>(
        &'a self,
        _session: &'a SessionId,
        _task: Text,
    ) -> BoxFuture<'a, Result<String, RemoteError>> {
        let answer = self.answer.clone().map_err(|detail| RemoteError {
            agent: self.name.clone(),
            detail,
        });
        Box::pin(async move { answer })
    }
}
