//! The state of a turn. It changes in one way only: by an event.

use super::deeds::Deeds;
use super::frame::{Entry, Frame, FrameEnd, Slot, SlotState};
use super::restored::Restored;
use super::setup::Setup;
use crate::gate::call_digest;
use crate::instruction::Notice;
use lango_core::{
    AgentName, Answer, AnsweredBy, ApprovalRequest, Asks, Call, CallId, CallStatus, Effect, Event,
    EventBody, Fault, FrameId, Limit, Limits, Opaque, Outcome, StopReason, Text, Timestamp, Trust,
    Usage,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

#[derive(Debug, PartialEq)]
pub(super) struct State {
    pub root: AgentName,
    pub limits: Limits,
    pub question: Text,
    pub setup: Setup,
    /// The root's first, then the others in the order in which they were opened.
    pub frames: Vec<Frame>,
    pub refused: BTreeSet<AgentName>,
    /// Replies that named an agent which is not there, and the last such reply by its number.
    pub unknown_agent_replies: u32,
    last_unknown_agent_reply: u32,
    pub calls_seen: HashSet<CallId>,
    pub model_calls: u32,
    /// Model calls whose replies were lost with their process. They count towards the limit, and nowhere else.
    pub lost_model_calls: u32,
    pub tool_calls: u32,
    /// Calls that may have changed something, in the order in which they were begun.
    pub deeds: Deeds,
    /// Calls that a person is asked about now.
    pub asked: u32,
    /// What was said in this turn to the calls that were asked about, by their digests.
    pub answers: HashMap<Text, Answer>,
    pub rounds: u32,
    pub usage: Usage,
    /// What was spent in millionths of a dollar; none once a reply had no known price.
    pub cost_micros: Option<u64>,
    /// A limit that cut some work short.
    pub limit_hit: Option<Limit>,
    pub outcome: Option<Outcome>,
    /// Time spent at work, without the time in which only a person could go on.
    pub active_ms: u64,
    /// How often it was taken up again since it last got any further.
    pub resumes_in_a_row: u32,
    /// Set if its database was restored in the middle of the turn, until the user has decided.
    pub restored: Option<Restored>,
    last_event: Option<Timestamp>,
    pub events: u32,
    /// The frame that has waited longest for its model, and since when it waits.
    pub first: Option<(FrameId, u32)>,
    /// Since when it is first, counted in events.
    pub first_since: u32,
}

impl State {
    pub fn new(root: AgentName, limits: Limits) -> Self {
        Self {
            root,
            limits,
            question: "".into(),
            setup: Setup::default(),
            frames: Vec::new(),
            refused: BTreeSet::new(),
            unknown_agent_replies: 0,
            last_unknown_agent_reply: 0,
            calls_seen: HashSet::new(),
            model_calls: 0,
            lost_model_calls: 0,
            tool_calls: 0,
            deeds: Deeds::default(),
            asked: 0,
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

    pub fn frame(&self, id: &FrameId) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.id == *id)
    }

    /// The only way in which the state changes. It looks at the event and at nothing else.
    pub fn evolve(&mut self, event: &Event) {
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
                // The delegating agent wrote the task, from all that it was shown.
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
                self.refused.insert(event.author.clone());
                self.end(&event.frame, FrameEnd::Rejected(Arc::clone(reason)));
            }
            EventBody::ToolCalled {
                call,
                tool,
                arguments,
                effect,
                inspection,
            } => {
                self.tool_calls += u32::from(!self.is_asked_for_its_fate(&event.frame, call));
                if *effect != Effect::Pure {
                    self.forget_answers_but(|| {
                        call_digest(&event.author, tool, arguments, inspection)
                    });
                    let agent = event.author.clone();
                    self.deeds.begin(call, agent, tool, arguments);
                }
                let running = SlotState::Running {
                    tool: tool.clone(),
                    arguments: Arc::clone(arguments),
                    effect: *effect,
                    inspection: inspection.clone(),
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
                self.deeds.end(call, *status);
                if *status == CallStatus::Denied {
                    self.count_faulty_reply(&event.frame);
                }
                let output = Arc::clone(output);
                self.answer(&event.frame, call, output, failed, attachments.clone());
                self.lower_trust(&event.frame, *trust);
            }
            EventBody::ApprovalRequested(request) => {
                self.asked += 1;
                if request.asks == Asks::Turn {
                    self.restored = Some(Restored::asked(request, event.time));
                } else {
                    let asked = SlotState::Asked {
                        request: request.clone(),
                        since: event.time,
                    };
                    self.set_slot(&event.frame, &request.call, asked);
                }
            }
            // What follows from it is the event after it.
            EventBody::ApprovalAnswered {
                request,
                answer,
                by,
            } => {
                self.asked = self.asked.saturating_sub(1);
                self.restored = self.restored.take().filter(|asked| !asked.is_over(request));
                let asked = self.frames.iter().flat_map(Frame::asked);
                // A grant can be taken back; it is looked up for every call.
                let is_given = !matches!(by, AnsweredBy::Grant { .. });
                let is_meant = |asked: &ApprovalRequest| {
                    is_given && asked.asks == Asks::Permission && asked.id == *request
                };
                let digest = asked
                    .filter(|(asked, _)| is_meant(asked))
                    .map(|(asked, _)| Text::clone(&asked.digest))
                    .next();
                self.answers
                    .extend(digest.map(|digest| (digest, answer.clone())));
            }
            EventBody::RemoteCalled { .. } => {
                self.change(&event.frame, |frame| frame.remote = true);
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
        }
        self.track_first_in_line();
    }

    fn spend(&mut self, usage: Usage, cost_micros: Option<u64>) {
        self.model_calls += 1;
        self.usage += usage;
        let sum = self.cost_micros.zip(cost_micros);
        self.cost_micros = sum.map(|(sum, more)| sum.saturating_add(more));
    }

    /// Notes a reply and opens a slot for each of its calls.
    fn reply(&mut self, frame: &FrameId, text: &Text, calls: &[Call], opaque: Option<&Opaque>) {
        self.calls_seen
            .extend(calls.iter().map(|call| call.id.clone()));
        let trust = self.trust_of(frame);
        let open = |call: &Call| Slot {
            call: call.clone(),
            trust,
            state: SlotState::Open,
        };
        let now = self.events;
        // An answer that may have to be corrected is shown with what is wrong with it.
        let is_structured = frame.is_root() && self.setup.answer_schema.is_some();
        let is_kept = !calls.is_empty() || (is_structured && !text.trim().is_empty());
        self.change(frame, |frame| {
            frame.reply_is_faulty = false;
            frame.waiting_since = now;
            if is_kept {
                frame.entries.push(Entry::Reply {
                    text: Arc::clone(text),
                    slots: calls.iter().map(open).collect(),
                    opaque: opaque.cloned(),
                });
            }
        });
    }

    /// Whether a call ran before: running it again because a person says so is still one call.
    fn is_asked_for_its_fate(&self, frame: &FrameId, call: &CallId) -> bool {
        let mut asked = self.frame(frame).into_iter().flat_map(Frame::asked);
        asked.any(|(asked, _)| asked.call == *call && asked.asks == Asks::Fate)
    }

    fn set_slot(&mut self, frame: &FrameId, call: &CallId, state: SlotState) {
        self.change(frame, |frame| {
            if let Some(slot) = frame.slot_mut(call) {
                slot.state = state;
            }
        });
    }

    fn correct(&mut self, frame: &FrameId, fault: Fault, call: Option<&CallId>, detail: &Text) {
        if let Some(call) = call {
            self.answer(frame, call, Arc::clone(detail), true, Vec::new());
            self.count_fault(frame, fault);
            return;
        }
        match fault {
            Fault::EmptyReply => self.ask_again(frame, Some(Notice::EmptyReply), detail),
            // The model did nothing wrong: the same request goes out with a higher limit.
            Fault::OutputLimit => self.ask_again(frame, None, detail),
            Fault::StrayRejection => self.ask_again(frame, Some(Notice::StrayRejection), detail),
            Fault::InvalidAnswer => self.ask_for_valid_answer(frame, detail),
            Fault::Repetition => self.change(frame, |frame| frame.repetition.found = true),
            Fault::ModelFailed => self.end(frame, FrameEnd::Failed(Arc::clone(detail))),
            Fault::ModelCallLimit => self.end_at(frame, Limit::ModelCalls),
            Fault::TokenLimit => self.end_at(frame, Limit::Tokens),
            Fault::CostLimit => self.end_at(frame, Limit::Cost),
            Fault::Interrupted => self.charge_what_was_under_way(),
            Fault::Restored => self.restored = Some(Restored::Marked),
            _ => {}
        }
    }

    /// Model calls that were under way when the process ended are made again, and were paid for all the same.
    fn charge_what_was_under_way(&mut self) {
        self.resumes_in_a_row += 1;
        let under_way = self.frames.iter().filter(|frame| frame.awaits_model());
        let under_way = u32::try_from(under_way.count()).unwrap_or(u32::MAX);
        self.lost_model_calls = self.lost_model_calls.saturating_add(under_way);
    }

    /// Faults are counted by replies, not by calls: a reply with three wrong calls is wrong once.
    fn count_fault(&mut self, frame: &FrameId, fault: Fault) {
        match fault {
            Fault::ToolCallLimit => self.limit_hit = Some(Limit::ToolCalls),
            Fault::TooManyCalls => {}
            _ => self.count_faulty_reply(frame),
        }
        if fault == Fault::UnknownAgent && self.last_unknown_agent_reply != self.model_calls {
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

    /// Something is changed: a yes to another call was given before that, and does not hold any more. What a command runs
    /// may be another program now.
    fn forget_answers_but(&mut self, digest: impl FnOnce() -> Text) {
        if !self.answers.is_empty() {
            let digest = digest();
            self.answers
                .retain(|asked, answer| !answer.allows() || *asked == digest);
        }
    }

    /// Counts the time since the last event, unless nothing but an answer of a person could come, or no process was
    /// there to do anything.
    fn pass_time(&mut self, event: &Event) {
        let last = self.last_event.replace(event.time);
        let was_gone = matches!(
            &event.body,
            EventBody::TurnCorrected {
                fault: Fault::Interrupted | Fault::Restored,
                ..
            }
        );
        if !was_gone && !self.is_parked() {
            let passed = last.map_or(0, |last| event.time.0.saturating_sub(last.0));
            self.active_ms = self.active_ms.saturating_add(passed);
        }
    }

    /// Whether nothing can go on before a person answers.
    pub fn is_parked(&self) -> bool {
        let is_idle =
            |frame: &Frame| !frame.remote && !frame.awaits_model() && frame.startable().is_empty();
        let mut open = self.frames.iter().filter(|frame| frame.is_open());
        self.asked > 0
            && self.outcome.is_none()
            && (self.restored.as_ref().is_some_and(Restored::is_asked) || open.all(is_idle))
    }

    fn ask_again(&mut self, frame: &FrameId, notice: Option<Notice>, detail: &Text) {
        let asked = self.frame(frame).is_some_and(|frame| frame.asked_again);
        if asked {
            self.end(frame, FrameEnd::Failed(Arc::clone(detail)));
        } else {
            self.change(frame, |frame| {
                frame.asked_again = true;
                frame.entries.extend(notice.map(Entry::Notice));
            });
        }
    }

    fn ask_for_valid_answer(&mut self, frame: &FrameId, problem: &Text) {
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

    pub fn change(&mut self, id: &FrameId, change: impl FnOnce(&mut Frame)) {
        if let Some(frame) = self.frames.iter_mut().find(|frame| frame.id == *id) {
            change(frame);
        }
    }
}

/// Whether a turn got further by it.
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
