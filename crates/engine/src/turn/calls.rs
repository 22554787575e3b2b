//! Judging what an agent called: a delegation, a tool of its own, somebody else's tool, or nothing that exists. Every call
//! is answered, whatever it is: a call without a result would make the provider refuse the next request.

use super::Turn;
use super::steps::ModelStep;
use crate::gate::{self, Admitted, Refusal};
use crate::instruction::DELEGATE;
use crate::tree::Agent;
use lango_core::{AgentName, Attachment, Call, EventBody, Fault, Inspection, Text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Arguments of the control function. Models send more than they are asked for; that is not worth a round.
#[derive(Deserialize)]
struct DelegateArguments {
    agent: String,
    task: String,
    #[serde(default)]
    finish: bool,
    #[serde(default)]
    attachments: Option<Value>,
}

/// A delegation that may happen.
struct Delegation {
    agent: AgentName,
    task: Text,
    finish: bool,
    attachments: Vec<Attachment>,
}

impl Turn {
    /// Delegations of one reply that run side by side; more are refused.
    const DELEGATIONS_PER_REPLY: usize = 4;

    /// Answers, starts or delegates each call of a reply.
    pub(super) fn take_calls(
        &mut self,
        step: &ModelStep,
        calls: &[Call],
        inspections: Vec<Inspection>,
    ) {
        let tree = Arc::clone(&self.tree);
        let Some(agent) = tree.agent(step.agent.as_str()) else {
            return;
        };
        let round = self.state.rounds + 1;
        let mut delegations = 0;
        // A call without an inspection is one of which its tool found nothing.
        let inspections = inspections
            .into_iter()
            .chain(std::iter::repeat_with(Inspection::default));
        for (call, inspection) in calls.iter().zip(inspections) {
            let delegation = match self.read_call(step, agent, call, calls.len()) {
                Ok(delegation) => delegation,
                Err(refusal) => {
                    self.correct(
                        &step.frame,
                        refusal.fault,
                        Some(call.id.clone()),
                        refusal.detail,
                    );
                    continue;
                }
            };
            match delegation {
                None => self.take_tool_call(step, agent, call, inspection),
                Some(_) if delegations == Self::DELEGATIONS_PER_REPLY => {
                    let detail = format!(
                        "a reply may delegate {} tasks at most; ask again",
                        Self::DELEGATIONS_PER_REPLY
                    );
                    self.correct(
                        &step.frame,
                        Fault::TooManyCalls,
                        Some(call.id.clone()),
                        detail,
                    );
                }
                Some(delegation) => {
                    delegations += 1;
                    self.delegate(step, call, delegation, round);
                }
            }
        }
    }

    /// Reads a call as a delegation, or as a call for the gate.
    fn read_call(
        &self,
        step: &ModelStep,
        agent: &Agent,
        call: &Call,
        calls_in_reply: usize,
    ) -> Result<Option<Delegation>, Refusal> {
        let is_orchestrator = step.frame.is_root() && !self.tree.agents.is_empty();
        if is_orchestrator && *call.name == *DELEGATE {
            let delegation = self.read_delegation(&call.arguments, calls_in_reply)?;
            self.check_delegation(step, &delegation)?;
            return Ok(Some(delegation));
        }
        if *call.name == *DELEGATE {
            let detail = format!(
                "{} cannot delegate; use your own functions, or answer",
                agent.name
            );
            return Err(Refusal {
                fault: Fault::DelegationClosed,
                detail,
            });
        }
        // A tool-less orchestrator that calls a tool all the same means its owner.
        if is_orchestrator
            && agent.tool(&call.name).is_none()
            && let Some(owner) = self.tree.owner_of(&call.name)
        {
            let task = format!(
                "Call {} with these arguments and report the result: {}",
                call.name, call.arguments
            );
            let delegation = Delegation {
                agent: owner.name.clone(),
                task: task.into(),
                finish: false,
                attachments: Vec::new(),
            };
            self.check_delegation(step, &delegation)?;
            return Ok(Some(delegation));
        }
        Ok(None)
    }

    fn read_delegation(&self, raw: &str, calls_in_reply: usize) -> Result<Delegation, Refusal> {
        let arguments: DelegateArguments = serde_json::from_str(raw).map_err(|error| Refusal {
            fault: Fault::BadArguments,
            detail: format!(
                "the arguments of `{DELEGATE}` do not fit: {error}; it takes agent, task and finish"
            ),
        })?;
        if arguments.task.trim().is_empty() {
            let detail = "the task is empty; say what the agent is to do".to_owned();
            return Err(Refusal {
                fault: Fault::BadArguments,
                detail,
            });
        }
        Ok(Delegation {
            agent: AgentName::new(arguments.agent),
            task: arguments.task.into(),
            // An answer by a schema is the root's own.
            finish: arguments.finish && calls_in_reply == 1 && !self.has_answer_schema(),
            attachments: self.delegated_attachments(arguments.attachments.as_ref())?,
        })
    }

    fn check_delegation(&self, step: &ModelStep, delegation: &Delegation) -> Result<(), Refusal> {
        if !step.offer.delegate {
            let detail =
                "nothing more can be delegated in this turn; answer with what you have".to_owned();
            return Err(Refusal {
                fault: Fault::DelegationClosed,
                detail,
            });
        }
        let live: Vec<&str> = self
            .tree
            .live(&self.state.refused)
            .map(AgentName::as_str)
            .collect();
        let live = live.join(", ");
        let name = &delegation.agent;
        if self.state.refused.contains(name) {
            let detail = format!(
                "{name} has rejected in this turn and cannot be asked again; the agents are: {live}"
            );
            return Err(Refusal {
                fault: Fault::RefusedAgent,
                detail,
            });
        }
        if self.tree.sub_agent(name.as_str()).is_none() {
            let shown: String = name.as_str().chars().take(64).collect();
            let detail = format!("there is no agent `{shown}`; the agents are exactly: {live}");
            return Err(Refusal {
                fault: Fault::UnknownAgent,
                detail,
            });
        }
        Ok(())
    }

    fn delegate(&mut self, step: &ModelStep, call: &Call, delegation: Delegation, round: u32) {
        let Delegation {
            agent,
            task,
            finish,
            attachments,
        } = delegation;
        let is_remote = self
            .tree
            .sub_agent(agent.as_str())
            .is_some_and(|agent| agent.remote);
        let body = EventBody::AgentDelegated {
            call: call.id.clone(),
            agent,
            task: Arc::clone(&task),
            round,
            finish,
            attachments,
        };
        self.emit_as_root(step.frame.clone(), body);
        if is_remote {
            self.emit_as_root((&call.id).into(), EventBody::RemoteCalled { task });
        }
    }

    fn take_tool_call(
        &mut self,
        step: &ModelStep,
        agent: &Agent,
        call: &Call,
        inspection: Inspection,
    ) {
        match self.admit_tool_call(agent, call) {
            Ok(admitted) => self.take_admitted(step, &call.id, admitted, inspection),
            Err(refusal) => self.correct(
                &step.frame,
                refusal.fault,
                Some(call.id.clone()),
                refusal.detail,
            ),
        }
    }

    /// Home, arguments, limits: the gate's order.
    fn admit_tool_call(&self, agent: &Agent, call: &Call) -> Result<Admitted, Refusal> {
        let admitted = gate::admit(&self.tree, agent, call)?;
        if self.state.tool_calls + self.state.asked >= self.state.limits.tool_calls {
            let detail =
                "not run: the tool calls of this turn are spent; answer with what you have"
                    .to_owned();
            return Err(Refusal {
                fault: Fault::ToolCallLimit,
                detail,
            });
        }
        Ok(admitted)
    }
}
