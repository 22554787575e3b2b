//! The state of a turn. Only events change it.

use super::effects::EffectLog;
use super::frame::{Entry, Frame, FrameEnd, Slot, SlotState};
use super::restored::RestoreQuestion;
use super::setup::Setup;
use crate::gate::call_digest;
use crate::instruction::Notice;
use lango_core::{
    AgentName, AnswerSource, ApprovalAnswer, ApprovalQuestion, ApprovalRequest, Call, CallId,
    CallStatus, Effect, Event, EventBody, FrameId, Limit, Limits, OpaqueData, Outcome, StopReason,
    Text, Timestamp, Trust, TurnFault, Usage,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

#[derive(Debug, PartialEq)]
pub(super) struct State {
    pub root: AgentName,
    pub limits: Limits,
    pub question: Text,
    pub setup: Setup,
    /// The root frame first, then the others in the order in which they were opened.
    pub frames: Vec<Frame>,
    pub rejected_by: BTreeSet<AgentName>,
    /// The number of replies that named an unknown agent.
    pub unknown_agent_replies: u32,
    /// The number of the last reply that named an unknown agent.
    last_unknown_agent_reply: u32,
    pub calls_seen: HashSet<CallId>,
    pub model_calls: u32,
    /// Model calls whose replies were lost in a crash. They count only towards the limit.
    pub lost_model_calls: u32,
    pub tool_calls: u32,
    /// Calls that may have changed something, in the order in which they started.
    pub effects: EffectLog,
    /// The number of pending approvals.
    pub pending_approvals: u32,
    /// The answers of this turn to approval requests, by the digest of the call.
    pub answers: HashMap<Text, ApprovalAnswer>,
    pub rounds: u32,
    pub usage: Usage,
    /// The cost in millionths of a dollar; `None` after a reply without a known price.
    pub cost_micros: Option<u64>,
    /// The limit that cut some work short.
    pub limit_hit: Option<Limit>,
    pub outcome: Option<Outcome>,
    /// The active time in milliseconds. The time in which only an approval could continue the turn does not count.
    pub active_ms: u64,
    /// How often the turn was resumed since it last made progress.
    pub resumes_in_a_row: u32,
    /// Set if the database was restored during the turn, until the user decides whether to continue it.
    pub restored: Option<RestoreQuestion>,
    last_event: Option<Timestamp>,
    pub events: u32,
    /// The frame that has waited longest for its model, and since which event.
    pub first: Option<(FrameId, u32)>,
    /// The number of the event after which this frame became first in the queue.
    pub first_since: u32,
}

impl State {
    pub(crate) fn new(root: AgentName, limits: Limits) -> Self {
        Self {
            root,
            limits,
            question: "".into(),
            setup: Setup::default(),
            frames: Vec::new(),
            rejected_by: BTreeSet::new(),
            unknown_agent_replies: 0,
            last_unknown_agent_reply: 0,
            calls_seen: HashSet::new(),
            model_calls: 0,
            lost_model_calls: 0,
            tool_calls: 0,
            effects: EffectLog::default(),
            pending_approvals: 0,
            answers: HashMap::new(),
            rounds: 0,
            usage: Usage::default(),
            cost_micros: Some(0),
            limit_hit: None,
            outcome: None,
            active_ms: 0,
            resumes_in_a_row: 0,
            restored: None,
            last_event: None,
            events: 0,
            first: None,
            first_since: 0,
        }
    }

    pub(crate) fn frame(&self, id: &FrameId) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.id == *id)
    }

    /// Applies an event. This is the only function that changes the state, and it sees only the event.
    pub(crate) fn evolve(&mut self, event: &Event) {
        self.events += 1;
        self.pass_time(event);
        if is_progress(&event.body) {
            self.resumes_in_a_row = 0;
        }
        match &event.body {
            EventBody::UserMessage {
                text,
                settings,
                attachments,
                ..
            } => self.begin(text, attachments, settings.as_deref(), event.body.trust()),
            EventBody::AgentMessage { model: None, .. } => {}
            EventBody::AgentMessage {
                text,
                calls,
                is_final,
                usage,
                cost_micros,
                opaque,
                stop,
                trust,
                ..
            } => {
                self.spend(*usage, *cost_micros);
                self.lower_trust(&event.frame, *trust);
                self.reply(&event.frame, text, calls, opaque.as_ref());
                if *stop == StopReason::OutputLimit {
                    self.change(&event.frame, |frame| frame.raise_output_limit = true);
                }
                if *is_final {
                    self.end(&event.frame, FrameEnd::Answered(Arc::clone(text)));
                }
            }
            EventBody::AgentDelegated {
                call,
                agent,
                task,
                round,
                finish,
                attachments,
            } => {
                self.rounds = self.rounds.max(*round);
                // The delegating agent wrote the task based on everything it has seen.
                let trust = self.trust_of(&event.frame);
                let id = FrameId::from(call);
                let mut frame = Frame::new(id, agent.clone(), Arc::clone(task), trust);
                frame.finish = *finish;
                frame.attachments.clone_from(attachments);
                frame.waiting_since = self.events;
                self.frames.push(frame);
                self.set_slot(&event.frame, call, SlotState::Delegated);
            }
            EventBody::AgentRejected { reason } => {
                self.rejected_by.insert(event.author.clone());
                self.end(&event.frame, FrameEnd::Rejected(Arc::clone(reason)));
            }
            EventBody::ToolCalled {
                call,
                tool,
                arguments,
                effect,
                inspection,
            } => {
                self.tool_calls += u32::from(!self.is_repeated_on_request(&event.frame, call));
                let mut is_approved = self.question_about(&event.frame, call).is_some();
                if *effect != Effect::Pure {
                    let digest = || call_digest(&event.author, tool, arguments, inspection);
                    is_approved |= self.forget_other_approvals(digest);
                    let agent = event.author.clone();
                    self.effects.begin(call, agent, tool, arguments);
                }
                let running = SlotState::Running {
                    tool: tool.clone(),
                    arguments: Arc::clone(arguments),
                    effect: *effect,
                    inspection: inspection.clone(),
                    is_approved,
                };
                self.set_slot(&event.frame, call, running);
            }
            EventBody::ToolReturned {
                call,
                status,
                output,
                trust,
                attachments,
            } => {
                let failed = *status != CallStatus::Ok;
                self.effects.end(call, *status);
                if *status == CallStatus::Denied {
                    self.count_faulty_reply(&event.frame);
                }
                let output = Arc::clone(output);
                self.answer(&event.frame, call, output, failed, attachments.clone());
                self.lower_trust(&event.frame, *trust);
            }
            EventBody::ApprovalRequested(request) => {
                self.pending_approvals += 1;
                if request.question == ApprovalQuestion::ContinueTurn {
                    self.restored = Some(RestoreQuestion::asked(request, event.time));
                } else {
                    let asked = SlotState::AwaitingApproval {
                        request: request.clone(),
                        since: event.time,
                    };
                    self.set_slot(&event.frame, &request.call, asked);
                }
            }
            // The next event applies the consequences of the answer.
            EventBody::ApprovalAnswered {
                request,
                answer,
                by,
            } => {
                self.pending_approvals = self.pending_approvals.saturating_sub(1);
                self.restored = self
                    .restored
                    .take()
                    .filter(|asked| !asked.is_settled_by(request));
                let asked = self.frames.iter().flat_map(Frame::pending_requests);
                // A grant can be revoked, so it is looked up for every call.
                let is_direct = !matches!(by, AnswerSource::Grant { .. });
                let is_answered = |asked: &ApprovalRequest| {
                    is_direct
                        && asked.question == ApprovalQuestion::Permission
                        && asked.id == *request
                };
                let digest = asked
                    .filter(|(asked, _)| is_answered(asked))
                    .map(|(asked, _)| Text::clone(&asked.digest))
                    .next();
                self.answers
                    .extend(digest.map(|digest| (digest, answer.clone())));
            }
            EventBody::RemoteCalled { .. } => {
                self.change(&event.frame, |frame| frame.is_remote = true);
                self.lower_trust(&event.frame, Trust::Untrusted);
            }
            EventBody::RemoteAccepted { thread } => {
                self.change(&event.frame, |frame| frame.thread = Some(thread.clone()));
            }
            EventBody::RemoteReturned {
                status,
                output,
                is_final,
                thread,
                attachments,
            } => {
                self.change(&event.frame, |frame| {
                    frame.thread.clone_from(thread);
                    frame.returned.clone_from(attachments);
                });
                self.remote_returned(&event.frame, *status, output, *is_final);
            }
            EventBody::TurnCorrected {
                fault,
                call,
                detail,
                context_tokens,
            } => {
                if context_tokens.is_some() {
                    self.change(&event.frame, |frame| frame.context_tokens = *context_tokens);
                }
                self.correct(&event.frame, *fault, call.as_ref(), detail);
            }
            EventBody::TurnFinished { outcome, .. } => self.outcome = Some(outcome.clone()),
            // It concerns the history of later turns.
            EventBody::TurnUndone { .. } => {}
        }
        self.track_first_in_queue();
    }

    fn spend(&mut self, usage: Usage, cost_micros: Option<u64>) {
        self.model_calls += 1;
        self.usage += usage;
        let sum = self.cost_micros.zip(cost_micros);
        self.cost_micros = sum.map(|(sum, more)| sum.saturating_add(more));
    }

    /// Records a reply and opens a slot for each of its calls.
    fn reply(&mut self, frame: &FrameId, text: &Text, calls: &[Call], opaque: Option<&OpaqueData>) {
        self.calls_seen
            .extend(calls.iter().map(|call| call.id.clone()));
        let trust = self.trust_of(frame);
        let open = |call: &Call| Slot {
            call: call.clone(),
            trust,
            state: SlotState::Open,
        };
        let now = self.events;
        // An answer with a schema may need a correction, so the next request must contain it.
        let is_structured = frame.is_root() && self.setup.answer_schema.is_some();
        let is_shown_again = !calls.is_empty() || (is_structured && !text.trim().is_empty());
        self.change(frame, |frame| {
            frame.reply_is_faulty = false;
            frame.waiting_since = now;
            if is_shown_again {
                frame.entries.push(Entry::Reply {
                    text: Arc::clone(text),
                    slots: calls.iter().map(open).collect(),
                    opaque: opaque.cloned(),
                });
            }
        });
    }

    /// Whether the user is asked about the unknown outcome of this call. Repeating it on the user's request does not
    /// count as another call.
    fn is_repeated_on_request(&self, frame: &FrameId, call: &CallId) -> bool {
        self.question_about(frame, call) == Some(ApprovalQuestion::UnknownOutcome)
    }

    /// Returns what the user was asked about a call that has not run since.
    fn question_about(&self, frame: &FrameId, call: &CallId) -> Option<ApprovalQuestion> {
        let mut asked = self.frame(frame)?.pending_requests();
        let (asked, _) = asked.find(|(asked, _)| asked.call == *call)?;
        Some(asked.question)
    }

    fn set_slot(&mut self, frame: &FrameId, call: &CallId, state: SlotState) {
        self.change(frame, |frame| {
            if let Some(slot) = frame.slot_mut(call) {
                slot.state = state;
            }
        });
    }

    fn correct(&mut self, frame: &FrameId, fault: TurnFault, call: Option<&CallId>, detail: &Text) {
        if let Some(call) = call {
            self.answer(frame, call, Arc::clone(detail), true, Vec::new());
            self.count_fault(frame, fault);
            return;
        }
        match fault {
            TurnFault::EmptyReply => self.retry_model(frame, Some(Notice::EmptyReply), detail),
            // The model did nothing wrong, so the same request is sent with a higher limit.
            TurnFault::OutputLimit => self.retry_model(frame, None, detail),
            TurnFault::StrayRejection => {
                self.retry_model(frame, Some(Notice::StrayRejection), detail)
            }
            TurnFault::InvalidAnswer => self.retry_answer(frame, detail),
            TurnFault::Repetition => self.change(frame, |frame| frame.repetition.found = true),
            TurnFault::ModelFailed => self.end(frame, FrameEnd::Failed(Arc::clone(detail))),
            TurnFault::ModelCallLimit => self.end_at(frame, Limit::ModelCalls),
            TurnFault::TokenLimit => self.end_at(frame, Limit::Tokens),
            TurnFault::CostLimit => self.end_at(frame, Limit::Cost),
            TurnFault::Interrupted => self.charge_lost_model_calls(),
            TurnFault::Restored => self.restored = Some(RestoreQuestion::Marked),
            _ => {}
        }
    }

    /// Counts the model calls that were running when the process ended. They are repeated, but were paid for.
    fn charge_lost_model_calls(&mut self) {
        self.resumes_in_a_row += 1;
        let running = self.frames.iter().filter(|frame| frame.awaits_model());
        let running = u32::try_from(running.count()).unwrap_or(u32::MAX);
        self.lost_model_calls = self.lost_model_calls.saturating_add(running);
    }

    /// Counts the fault. Several wrong calls in one reply count once.
    fn count_fault(&mut self, frame: &FrameId, fault: TurnFault) {
        match fault {
            TurnFault::ToolCallLimit => self.limit_hit = Some(Limit::ToolCalls),
            TurnFault::TooManyCalls => {}
            _ => self.count_faulty_reply(frame),
        }
        if fault == TurnFault::UnknownAgent && self.last_unknown_agent_reply != self.model_calls {
            self.last_unknown_agent_reply = self.model_calls;
            self.unknown_agent_replies += 1;
        }
    }

    fn count_faulty_reply(&mut self, frame: &FrameId) {
        self.change(frame, |frame| {
            let was_faulty = std::mem::replace(&mut frame.reply_is_faulty, true);
            frame.faulty_replies += u32::from(!was_faulty);
        });
    }

    /// Forgets approvals of other calls, because this call changes something: a command that was approved before may
    /// now run another program. Returns whether an equal call was approved.
    fn forget_other_approvals(&mut self, digest: impl FnOnce() -> Text) -> bool {
        if self.answers.is_empty() {
            return false;
        }
        let digest = digest();
        self.answers
            .retain(|asked, answer| !answer.allows() || *asked == digest);
        self.answers
            .get(&digest)
            .is_some_and(ApprovalAnswer::allows)
    }

    /// Adds the time since the last event to the active time, unless only an approval could continue the turn or no
    /// process was running.
    fn pass_time(&mut self, event: &Event) {
        let last = self.last_event.replace(event.time);
        let was_interrupted = matches!(
            &event.body,
            EventBody::TurnCorrected {
                fault: TurnFault::Interrupted | TurnFault::Restored,
                ..
            }
        );
        if !was_interrupted && !self.is_parked() {
            let passed = last.map_or(0, |last| event.time.0.saturating_sub(last.0));
            self.active_ms = self.active_ms.saturating_add(passed);
        }
    }

    /// Whether only an approval can continue the turn.
    pub(crate) fn is_parked(&self) -> bool {
        let is_idle = |frame: &Frame| {
            !frame.is_remote && !frame.awaits_model() && frame.startable().is_empty()
        };
        let mut open = self.frames.iter().filter(|frame| frame.is_open());
        self.pending_approvals > 0
            && self.outcome.is_none()
            && (self
                .restored
                .as_ref()
                .is_some_and(RestoreQuestion::is_asked)
                || open.all(is_idle))
    }

    fn retry_model(&mut self, frame: &FrameId, notice: Option<Notice>, detail: &Text) {
        let asked = self.frame(frame).is_some_and(|frame| frame.was_retried);
        if asked {
            self.end(frame, FrameEnd::Failed(Arc::clone(detail)));
        } else {
            self.change(frame, |frame| {
                frame.was_retried = true;
                frame.entries.extend(notice.map(Entry::Notice));
            });
        }
    }

    fn retry_answer(&mut self, frame: &FrameId, problem: &Text) {
        if self.frame(frame).is_some_and(|frame| frame.answer_retried) {
            return self.end(frame, FrameEnd::Failed(Arc::clone(problem)));
        }
        self.change(frame, |frame| {
            frame.answer_retried = true;
            frame
                .entries
                .push(Entry::InvalidAnswer(Arc::clone(problem)));
        });
    }

    pub(crate) fn change(&mut self, id: &FrameId, change: impl FnOnce(&mut Frame)) {
        if let Some(frame) = self.frames.iter_mut().find(|frame| frame.id == *id) {
            change(frame);
        }
    }
}

/// Whether the event shows that the turn made progress.
fn is_progress(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::AgentMessage { .. }
            | EventBody::ToolReturned { .. }
            | EventBody::RemoteAccepted { .. }
            | EventBody::RemoteReturned { .. }
            | EventBody::ApprovalAnswered { .. }
    )
}
