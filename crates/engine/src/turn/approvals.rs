//! Calls that need the user's approval. A request is stored before the user sees it. When nothing else can run, the
//! turn is parked in the log and needs no process. An answer applies to its call, and to equal calls in the same turn.

use super::Turn;
use super::frame::Frame;
use super::steps::ModelStep;
use crate::gate::{self, CheckedCall, Denial, RecheckContext, denied_by_user, digest};
use lango_core::{
    AgentName, AnswerSource, ApprovalAnswer, ApprovalId, ApprovalQuestion, ApprovalRequest, CallId,
    CallStatus, EventBody, FrameId, Inspection, PendingApproval, Risk, Text, ToolName, ToolSpec,
    Trust,
};
use serde_json::Value;
use std::sync::Arc;

impl Turn {
    /// Returns the pending approvals, oldest first.
    pub fn waiting(&self) -> Vec<PendingApproval> {
        let of_frame = |frame: &Frame| -> Vec<PendingApproval> {
            let waiting = frame
                .pending_requests()
                .map(|(request, asked)| PendingApproval {
                    session: self.session.clone(),
                    turn: self.id.clone(),
                    asked,
                    request: request.clone(),
                });
            waiting.collect()
        };
        let mut waiting: Vec<PendingApproval> =
            self.state.frames.iter().flat_map(of_frame).collect();
        waiting.extend(self.waiting_turn());
        waiting.sort_by_key(|waiting| waiting.asked);
        waiting
    }

    /// Whether only an approval can continue the turn.
    pub fn is_parked(&self) -> bool {
        self.state.is_parked()
    }

    /// Whether a request has no answer yet.
    pub(crate) fn has_requests(&self) -> bool {
        self.state.pending_approvals > 0
    }

    /// Asks the user for approval of a call.
    pub(super) fn request_approval(
        &mut self,
        step: &ModelStep,
        call: CheckedCall,
        digest: Text,
        (reason, pattern): (Text, Option<Text>),
    ) {
        let CheckedCall {
            id,
            spec,
            arguments,
            inspection,
        } = call;
        let risk = spec.risk_of(&arguments);
        let request = ApprovalRequest {
            id: self.approval_id(&id, ApprovalQuestion::Permission),
            agent: step.agent.clone(),
            call: id,
            tool: spec.name.clone(),
            effect: spec.effect,
            risk: match &inspection.site {
                Some(_) => risk.max(Risk::Moderate),
                None => risk,
            },
            arguments,
            inspection,
            digest,
            folder: Text::clone(self.rules.folder()),
            question: ApprovalQuestion::Permission,
            reason,
            pattern,
        };
        let body = EventBody::ApprovalRequested(request);
        self.emit_as_root(step.frame.clone(), body);
    }

    /// Processes the answer to a request. Ignores answers that do not fit the question.
    pub(super) fn answered(
        &mut self,
        request: &ApprovalId,
        answer: &ApprovalAnswer,
        by: &AnswerSource,
    ) {
        let waiting_turn = self.waiting_turn();
        if waiting_turn.is_some_and(|turn| turn.request.id == *request) {
            if answer.fits(ApprovalQuestion::ContinueTurn) {
                self.settle_turn(request, answer, by);
            }
            return;
        }
        self.check_stored_calls();
        let found = self
            .pending_requests()
            .find(|(_, _, asked)| asked.id == *request);
        let Some((frame, agent, asked)) = found.filter(|(.., asked)| answer.fits(asked.question))
        else {
            return;
        };
        match asked.question {
            ApprovalQuestion::Permission => {
                let digest = Text::clone(&asked.digest);
                self.permit(request, &digest, answer, by);
            }
            ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn => {
                let (frame, agent, asked) = (frame.clone(), agent.clone(), asked.clone());
                self.settle_unknown_outcome(&frame, &agent, &asked, answer, by);
            }
        }
    }

    /// Runs or denies the call, and all other pending calls that are equal to it.
    fn permit(
        &mut self,
        request: &ApprovalId,
        digest: &Text,
        answer: &ApprovalAnswer,
        by: &AnswerSource,
    ) {
        // Equal calls get the same answer, except for those that need approval every time.
        let is_covered = |asked: &ApprovalRequest| {
            let is_same = asked.digest == *digest && asked.question == ApprovalQuestion::Permission;
            asked.id == *request || (is_same && asked.pattern.is_some())
        };
        let same: Vec<_> = self
            .pending_requests()
            .filter(|(_, _, asked)| is_covered(asked))
            .map(|(frame, agent, asked)| (frame.clone(), agent.clone(), asked.clone()))
            .collect();
        for (frame, agent, mut asked) in same {
            if matches!(by, AnswerSource::Grant { .. }) {
                asked.inspection.allow_later_changes();
            }
            // An answer creates only one grant. A call that needs approval every time creates none.
            let is_grant = asked.id == *request && asked.pattern.is_some();
            let answer = if answer.allows() && !is_grant {
                &ApprovalAnswer::Once
            } else {
                answer
            };
            self.record_answer(&frame, &asked.id, answer, by);
            match answer {
                ApprovalAnswer::No { reason } => {
                    self.refuse(&frame, &agent, &asked.call, denied_by_user(reason.as_ref()))
                }
                _ => self.start_approved(&frame, &agent, asked),
            }
        }
    }

    /// Runs an approved call, if its tool still exists and neither the current rules nor the mode deny it.
    pub(super) fn start_approved(
        &mut self,
        frame: &FrameId,
        agent: &AgentName,
        asked: ApprovalRequest,
    ) {
        let content = (&*asked.arguments, &asked.inspection);
        match self.check_again(agent, &asked.tool, content, true) {
            Ok(spec) => {
                let call = CheckedCall {
                    id: asked.call,
                    spec,
                    arguments: asked.arguments,
                    inspection: asked.inspection,
                };
                self.start_call(frame, agent, call);
            }
            Err(denial) => self.refuse(frame, agent, &asked.call, denial.for_model()),
        }
    }

    /// Checks a call again that was stored or approved earlier.
    pub(super) fn check_again(
        &self,
        agent: &AgentName,
        tool: &ToolName,
        content: (&Value, &Inspection),
        is_approved: bool,
    ) -> Result<Arc<ToolSpec>, Denial> {
        let context = RecheckContext {
            tree: &self.tree,
            rules: &self.rules,
            mode: self.mode.get(),
            is_approved,
        };
        gate::check_again(&context, agent, tool, content)
    }

    /// Denies all pending approvals because the turn ends.
    pub(super) fn close_requests(&mut self, detail: &str, by: &AnswerSource) {
        if let Some(turn) = self.waiting_turn() {
            let no = ApprovalAnswer::No {
                reason: Some(detail.into()),
            };
            self.record_answer(&FrameId::root(), &turn.request.id, &no, by);
        }
        let asked: Vec<_> = self
            .pending_requests()
            .map(|(frame, agent, asked)| (frame.clone(), agent.clone(), asked.clone()))
            .collect();
        for (frame, agent, asked) in asked {
            let no = ApprovalAnswer::No {
                reason: Some(detail.into()),
            };
            if asked.question == ApprovalQuestion::UnknownOutcome {
                self.settle_unknown_outcome(&frame, &agent, &asked, &no, by);
                continue;
            }
            self.record_answer(&frame, &asked.id, &no, by);
            self.refuse(&frame, &agent, &asked.call, format!("not run: {detail}"));
        }
    }

    fn pending_requests(&self) -> impl Iterator<Item = (&FrameId, &AgentName, &ApprovalRequest)> {
        let frames = self.state.frames.iter();
        frames.flat_map(|frame| {
            frame
                .pending_requests()
                .map(move |(request, _)| (&frame.id, &frame.agent, request))
        })
    }

    pub(super) fn record_answer(
        &mut self,
        frame: &FrameId,
        request: &ApprovalId,
        answer: &ApprovalAnswer,
        by: &AnswerSource,
    ) {
        let author = match by {
            AnswerSource::Person | AnswerSource::Grant { .. } => AgentName::user(),
            AnswerSource::Unattended | AnswerSource::TurnEnded | AnswerSource::Expired => {
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

    /// Emits the call. Its tool runs when the event is stored.
    pub(super) fn start_call(&mut self, frame: &FrameId, agent: &AgentName, call: CheckedCall) {
        let body = EventBody::ToolCalled {
            call: call.id,
            tool: call.spec.name.clone(),
            arguments: call.arguments,
            effect: call.spec.effect,
            inspection: call.inspection,
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

    pub(super) fn return_without_run(
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

    /// Returns the id of a request. It is derived from session, turn and call, so all replicas compute the same id.
    pub(super) fn approval_id(&self, call: &CallId, question: ApprovalQuestion) -> ApprovalId {
        let (session, turn) = (self.session.as_str(), self.id.as_str());
        let digest = match question {
            ApprovalQuestion::Permission => digest([session, turn, call.as_str()]),
            // The user can be asked again about a call that was repeated.
            ApprovalQuestion::UnknownOutcome | ApprovalQuestion::ContinueTurn => {
                digest([session, turn, &format!("fate {call} {}", self.next_seq)])
            }
        };
        ApprovalId::new(format!("p_{}", &digest[..8]))
    }
}
