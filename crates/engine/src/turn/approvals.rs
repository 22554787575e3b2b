//! Calls that wait for a person. A call that is asked about is in the log before anybody sees it; when nothing else can go
//! on, the turn is parked there, and needs no process. An answer holds for that very call, and for the same call again in
//! the same turn.

use super::Turn;
use super::frame::Frame;
use super::steps::ModelStep;
use crate::gate::{Admitted, Decision, call_digest, digest};
use lango_core::{
    AgentName, Answer, AnsweredBy, ApprovalId, ApprovalRequest, Asks, CallId, CallStatus,
    EventBody, FrameId, Inspection, Risk, Text, ToolSpec, Trust, Waiting,
};
use serde_json::Value;
use std::sync::Arc;

impl Turn {
    /// Calls of a conversation that may wait for approval at a time; further ones are denied.
    const MAX_PENDING: u32 = 100;

    /// The calls that wait for a person, in the order in which they were asked for.
    pub fn waiting(&self) -> Vec<Waiting> {
        let of_frame = |frame: &Frame| -> Vec<Waiting> {
            let waiting = frame.asked().map(|(request, asked)| Waiting {
                session: self.session.clone(),
                turn: self.id.clone(),
                asked,
                request: request.clone(),
            });
            waiting.collect()
        };
        let mut waiting: Vec<Waiting> = self.state.frames.iter().flat_map(of_frame).collect();
        waiting.extend(self.waiting_turn());
        waiting.sort_by_key(|waiting| waiting.asked);
        waiting
    }

    /// Whether nothing can go on before a person answers.
    pub fn is_parked(&self) -> bool {
        self.state.is_parked()
    }

    /// Runs, asks for or refuses a call that has its home and fits its schema: the policy's part of the gate.
    pub(super) fn take_admitted(
        &mut self,
        step: &ModelStep,
        call: &CallId,
        admitted: Admitted,
        inspection: Inspection,
    ) {
        let Admitted { tool, arguments } = admitted;
        let inspection = self.with_user_addresses(inspection);
        let spec = Arc::clone(&tool.spec);
        let (frame, agent) = (&step.frame, &step.agent);
        if let Some(reason) = &inspection.refused {
            let detail = format!("not run: {reason}");
            return self.return_without_run(frame, agent, call, CallStatus::Error, detail);
        }
        match self.rules.decide(agent, &spec, &arguments, &inspection) {
            Decision::Run => self.start(frame, agent, call, &spec, (arguments, inspection)),
            Decision::Deny { reason } => {
                self.refuse(&step.frame, &step.agent, call, forbidden(&reason));
            }
            Decision::Ask { reason, pattern } => {
                let digest = call_digest(agent, &spec.name, &arguments, &inspection);
                match self.state.answers.get(&digest) {
                    Some(answer) if answer.allows() && pattern.is_some() => {
                        self.start(frame, agent, call, &spec, (arguments, inspection))
                    }
                    Some(Answer::No { reason }) => {
                        let detail = refusal(reason.as_ref());
                        self.refuse(&step.frame, &step.agent, call, detail);
                    }
                    _ if self.state.asked >= Self::MAX_PENDING => {
                        let detail = format!(
                            "not run: {} calls of this conversation wait for approval already, which is the limit",
                            Self::MAX_PENDING
                        );
                        self.refuse(frame, agent, call, detail);
                    }
                    _ => {
                        let request = ApprovalRequest {
                            id: self.approval_id(call, Asks::Permission),
                            agent: step.agent.clone(),
                            call: call.clone(),
                            tool: spec.name.clone(),
                            effect: spec.effect,
                            risk: match &inspection.site {
                                Some(_) => spec.risk_of(&arguments).max(Risk::Moderate),
                                None => spec.risk_of(&arguments),
                            },
                            arguments,
                            inspection,
                            digest,
                            folder: Text::clone(self.rules.folder()),
                            asks: Asks::Permission,
                            reason,
                            pattern,
                        };
                        let body = EventBody::ApprovalRequested(request);
                        self.emit_as_root(step.frame.clone(), body);
                    }
                }
            }
        }
    }

    /// Takes an answer to what was asked; one that does not fit is none.
    pub(super) fn answered(&mut self, request: &ApprovalId, answer: &Answer, by: &AnsweredBy) {
        let waiting_turn = self.waiting_turn();
        if waiting_turn.is_some_and(|turn| turn.request.id == *request) {
            if answer.fits(Asks::Turn) {
                self.settle_turn(request, answer, by);
            }
            return;
        }
        let found = self.asked().find(|(_, _, asked)| asked.id == *request);
        let Some((frame, agent, asked)) = found.filter(|(.., asked)| answer.fits(asked.asks))
        else {
            return;
        };
        match asked.asks {
            Asks::Permission => {
                let digest = Text::clone(&asked.digest);
                self.permit(request, &digest, answer, by);
            }
            Asks::Fate | Asks::Turn => {
                let (frame, agent, asked) = (frame.clone(), agent.clone(), asked.clone());
                self.settle_fate(&frame, &agent, &asked, answer, by);
            }
        }
    }

    /// Runs the call or refuses it, and with it every other one that is the same.
    fn permit(&mut self, request: &ApprovalId, digest: &Text, answer: &Answer, by: &AnsweredBy) {
        // The same call again is answered with it, but for what has to be asked for each time.
        let is_meant = |asked: &ApprovalRequest| {
            let is_same = asked.digest == *digest && asked.asks == Asks::Permission;
            asked.id == *request || (is_same && asked.pattern.is_some())
        };
        let same: Vec<_> = self
            .asked()
            .filter(|(_, _, asked)| is_meant(asked))
            .map(|(frame, agent, asked)| (frame.clone(), agent.clone(), asked.clone()))
            .collect();
        for (frame, agent, asked) in same {
            // One answer is one grant, and what has to be asked for each time cannot be granted for longer.
            let is_grant = asked.id == *request && asked.pattern.is_some();
            let answer = match answer.allows() && !is_grant {
                true => &Answer::Once,
                false => answer,
            };
            self.note_answer(&frame, &asked.id, answer, by);
            match answer {
                Answer::No { reason } => {
                    self.refuse(&frame, &agent, &asked.call, refusal(reason.as_ref()))
                }
                _ => self.start_asked(&frame, &agent, asked),
            }
        }
    }

    /// Runs a call that a person was asked about, if it is still there and no rule forbids it by now.
    pub(super) fn start_asked(
        &mut self,
        frame: &FrameId,
        agent: &AgentName,
        asked: ApprovalRequest,
    ) {
        let Some(spec) = self.spec_of(agent, &asked.tool) else {
            let detail = format!("not run: the tool `{}` is not there any more", asked.tool);
            return self.refuse(frame, agent, &asked.call, detail);
        };
        let (arguments, inspection) = (asked.arguments, asked.inspection);
        match self.rules.decide(agent, &spec, &arguments, &inspection) {
            // The rules may have become stricter while it waited.
            Decision::Deny { reason } => self.refuse(frame, agent, &asked.call, forbidden(&reason)),
            Decision::Run | Decision::Ask { .. } => {
                self.start(frame, agent, &asked.call, &spec, (arguments, inspection))
            }
        }
    }

    /// Closes what waits for a person because the turn ends: nobody can allow it any more.
    pub(super) fn close_requests(&mut self, detail: &str, by: &AnsweredBy) {
        if let Some(turn) = self.waiting_turn() {
            let no = Answer::No {
                reason: Some(detail.into()),
            };
            self.note_answer(&FrameId::root(), &turn.request.id, &no, by);
        }
        let asked: Vec<_> = self
            .asked()
            .map(|(frame, agent, asked)| (frame.clone(), agent.clone(), asked.clone()))
            .collect();
        for (frame, agent, asked) in asked {
            let no = Answer::No {
                reason: Some(detail.into()),
            };
            if asked.asks == Asks::Fate {
                self.settle_fate(&frame, &agent, &asked, &no, by);
                continue;
            }
            self.note_answer(&frame, &asked.id, &no, by);
            self.refuse(&frame, &agent, &asked.call, format!("not run: {detail}"));
        }
    }

    fn asked(&self) -> impl Iterator<Item = (&FrameId, &AgentName, &ApprovalRequest)> {
        let frames = self.state.frames.iter();
        frames.flat_map(|frame| {
            frame
                .asked()
                .map(move |(request, _)| (&frame.id, &frame.agent, request))
        })
    }

    pub(super) fn note_answer(
        &mut self,
        frame: &FrameId,
        request: &ApprovalId,
        answer: &Answer,
        by: &AnsweredBy,
    ) {
        let author = match by {
            AnsweredBy::Person | AnsweredBy::Grant { .. } => AgentName::user(),
            AnsweredBy::Nobody | AnsweredBy::TurnEnded | AnsweredBy::Expired => {
                self.tree.root.name.clone()
            }
        };
        let body = EventBody::ApprovalAnswered {
            request: request.clone(),
            answer: answer.clone(),
            by: by.clone(),
        };
        self.emit(frame.clone(), author, body);
    }

    fn start(
        &mut self,
        frame: &FrameId,
        agent: &AgentName,
        call: &CallId,
        spec: &ToolSpec,
        (arguments, inspection): (Arc<Value>, Inspection),
    ) {
        let body = EventBody::ToolCalled {
            call: call.clone(),
            tool: spec.name.clone(),
            arguments,
            effect: spec.effect,
            inspection,
        };
        self.emit(frame.clone(), agent.clone(), body);
    }

    pub(super) fn refuse(
        &mut self,
        frame: &FrameId,
        agent: &AgentName,
        call: &CallId,
        detail: String,
    ) {
        self.return_without_run(frame, agent, call, CallStatus::Denied, detail);
    }

    fn return_without_run(
        &mut self,
        frame: &FrameId,
        agent: &AgentName,
        call: &CallId,
        status: CallStatus,
        detail: String,
    ) {
        let body = EventBody::ToolReturned {
            call: call.clone(),
            status,
            output: detail.into(),
            trust: Trust::Trusted,
            attachments: Vec::new(),
        };
        self.emit(frame.clone(), agent.clone(), body);
    }

    /// The same question about the same call of the same turn has the same id, whoever counts.
    pub(super) fn approval_id(&self, call: &CallId, asks: Asks) -> ApprovalId {
        let (session, turn) = (self.session.as_str(), self.id.as_str());
        let digest = match asks {
            Asks::Permission => digest([session, turn, call.as_str()]),
            // It can be asked again after it was run again.
            Asks::Fate | Asks::Turn => {
                digest([session, turn, &format!("fate {call} {}", self.next_seq)])
            }
        };
        ApprovalId::new(format!("p_{}", &digest[..8]))
    }
}

/// What the model is told of a rule that denies.
fn forbidden(reason: &str) -> String {
    format!("not run: {reason} forbids it; do not try it in another way")
}

/// What the model is told of a no.
fn refusal(reason: Option<&Text>) -> String {
    match reason {
        Some(reason) => format!("not run: {reason}"),
        None => "not run: the user said no; go on without it, or ask what to do instead".to_owned(),
    }
}
