//! Handles the calls of a reply: delegations, the agent's own tools, tools of other agents, and functions that do not
//! exist. Every call gets a result, because providers reject a request in which a call has none.

use super::Turn;
use super::steps::ModelStep;
use crate::gate::{self, CallDecision, GateContext, InvalidCall};
use crate::instruction::DELEGATE;
use crate::tree::Agent;
use lango_core::{AgentName, Attachment, Call, EventBody, Inspection, Text, TurnFault};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Arguments of the `delegate` function. Unknown fields are ignored: models often send extra ones, and rejecting them
/// would cost a model call.
#[derive(Deserialize)]
struct DelegateArguments {
    agent: String,
    task: String,
    #[serde(default)]
    finish: bool,
    #[serde(default)]
    attachments: Option<Value>,
}

/// A validated delegation.
struct Delegation {
    agent: AgentName,
    task: Text,
    finish: bool,
    attachments: Vec<Attachment>,
}

impl Turn {
    /// The maximum number of delegations in one reply; further ones are rejected.
    const DELEGATIONS_PER_REPLY: usize = 4;

    /// Answers, starts or delegates each call of a reply.
    pub(super) fn handle_calls(
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
        // If inspections are missing, the tools found nothing.
        let inspections = inspections
            .into_iter()
            .chain(std::iter::repeat_with(Inspection::default));
        for (call, inspection) in calls.iter().zip(inspections) {
            let delegation = match self.read_call(step, agent, call, calls.len()) {
                Ok(delegation) => delegation,
                Err(invalid) => {
                    self.correct(
                        &step.frame,
                        invalid.fault,
                        Some(call.id.clone()),
                        invalid.detail,
                    );
                    continue;
                }
            };
            match delegation {
                None => self.handle_tool_call(step, agent, call, inspection),
                Some(_) if delegations == Self::DELEGATIONS_PER_REPLY => {
                    let detail = format!(
                        "a reply may delegate at most {} tasks; delegate this one in your next reply",
                        Self::DELEGATIONS_PER_REPLY
                    );
                    self.correct(
                        &step.frame,
                        TurnFault::TooManyCalls,
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

    /// Returns the delegation that a call requests, or `None` for a tool call.
    fn read_call(
        &self,
        step: &ModelStep,
        agent: &Agent,
        call: &Call,
        calls_in_reply: usize,
    ) -> Result<Option<Delegation>, InvalidCall> {
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
            return Err(InvalidCall {
                fault: TurnFault::DelegationClosed,
                detail,
            });
        }
        // An orchestrator without tools that calls a tool anyway gets a delegation to the owner of the tool.
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

    fn read_delegation(&self, raw: &str, calls_in_reply: usize) -> Result<Delegation, InvalidCall> {
        let arguments: DelegateArguments = serde_json::from_str(raw).map_err(|error| InvalidCall {
            fault: TurnFault::BadArguments,
            detail: format!(
                "the arguments of `{DELEGATE}` do not fit: {error}; it takes agent, task and finish"
            ),
        })?;
        if arguments.task.trim().is_empty() {
            let detail = "the task is empty; say what the agent should do".to_owned();
            return Err(InvalidCall {
                fault: TurnFault::BadArguments,
                detail,
            });
        }
        Ok(Delegation {
            agent: AgentName::new(arguments.agent),
            task: arguments.task.into(),
            // With a schema, only the root answers.
            finish: arguments.finish && calls_in_reply == 1 && !self.has_answer_schema(),
            attachments: self.delegated_attachments(arguments.attachments.as_ref())?,
        })
    }

    fn check_delegation(
        &self,
        step: &ModelStep,
        delegation: &Delegation,
    ) -> Result<(), InvalidCall> {
        if !step.offer.delegate {
            let detail =
                "nothing more can be delegated in this turn; answer with what you have".to_owned();
            return Err(InvalidCall {
                fault: TurnFault::DelegationClosed,
                detail,
            });
        }
        let available: Vec<&str> = self
            .tree
            .available_agents(&self.state.rejected_by)
            .map(AgentName::as_str)
            .collect();
        let available = available.join(", ");
        let name = &delegation.agent;
        if self.state.rejected_by.contains(name) {
            let detail = format!(
                "{name} has rejected a task in this turn and gets no more; the agents are: {available}"
            );
            return Err(InvalidCall {
                fault: TurnFault::RefusedAgent,
                detail,
            });
        }
        if self.tree.sub_agent(name.as_str()).is_none() {
            let shown: String = name.as_str().chars().take(64).collect();
            let detail =
                format!("there is no agent `{shown}`; the agents are exactly: {available}");
            return Err(InvalidCall {
                fault: TurnFault::UnknownAgent,
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
            .is_some_and(|agent| agent.is_remote);
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

    /// Carries out the gate's decision about a call.
    fn handle_tool_call(
        &mut self,
        step: &ModelStep,
        agent: &Agent,
        call: &Call,
        inspection: Inspection,
    ) {
        let inspection = self.with_user_urls(inspection);
        let context = GateContext {
            tree: &self.tree,
            rules: &self.rules,
            mode: self.mode.get(),
            tool_calls: self.state.tool_calls,
            max_tool_calls: self.state.limits.tool_calls,
            pending_approvals: self.state.pending_approvals,
            answers: &self.state.answers,
        };
        match gate::decide(&context, agent, call, inspection) {
            Ok(CallDecision::Run(call)) => self.start_call(&step.frame, &step.agent, call),
            Ok(CallDecision::Ask {
                call,
                digest,
                reason,
                pattern,
            }) => self.request_approval(step, call, digest, (reason, pattern)),
            Ok(CallDecision::Return { status, output }) => {
                self.return_without_run(&step.frame, &step.agent, &call.id, status, output)
            }
            Err(invalid) => self.correct(
                &step.frame,
                invalid.fault,
                Some(call.id.clone()),
                invalid.detail,
            ),
        }
    }
}
