//! Builds model requests, as a pure function of the log and the configuration.
//!
//! The orchestrator sees the earlier turns and its own delegations with their results, but not the tool calls of its
//! sub-agents. A sub-agent sees the conversation as data, its task, and its own calls. No text appears under a wrong
//! author: an answer that a sub-agent gave the user directly appears to the orchestrator as the result of a delegation.

use super::Turn;
use super::frame::{Entry, Frame, Slot, SlotState};
use super::offer::Offer;
use super::request_size::{self, RequestSpace};
use super::steps::ModelStep;
use crate::history::undone_notice;
use crate::instruction::{self, Finish, QuestionPrompt};
use crate::tree::{Agent, TreeMode};
use lango_core::{Function, Message, ModelRequest, Text};
use serde::Serialize;
use std::sync::Arc;

/// The author of a notice in the conversation as a sub-agent sees it.
const NOTICE_AUTHOR: &str = "lango";

/// One message of the conversation as a sub-agent sees it.
#[derive(Serialize)]
struct BriefMessage<'a> {
    author: &'a str,
    text: &'a str,
}

impl Turn {
    /// The number of earlier exchanges that a sub-agent sees. The orchestrator's task must supply the rest.
    const BRIEF_EXCHANGES: usize = 4;
    /// The maximum length of an earlier message that a sub-agent sees.
    const BRIEF_BYTES: usize = 2000;

    /// Builds the model request of this step.
    pub fn request(&self, step: &ModelStep) -> ModelRequest {
        match self.state.frame(&step.frame) {
            Some(frame) => self.request_of(frame, step.offer),
            None => ModelRequest::default(),
        }
    }

    /// Estimates the tokens of a frame's next request, without results that came after event number `until`.
    pub(super) fn estimated_tokens(&self, frame: &Frame, until: u32) -> u64 {
        let offer = Offer {
            delegate: frame.id.is_root(),
            tools: true,
            ..Offer::default()
        };
        let late = frame
            .slots()
            .iter()
            .filter(|slot| slot.is_answered_after(until));
        let late = late.filter_map(result_message);
        let late_bytes = late
            .map(|result| request_size::message_bytes(&result))
            .sum();
        let bytes = request_size::bytes_of(&self.request_of(frame, offer));
        request_size::tokens(bytes.saturating_sub(late_bytes))
    }

    pub(super) fn request_of(&self, frame: &Frame, offer: Offer) -> ModelRequest {
        let agent = self
            .tree
            .agent(frame.agent.as_str())
            .unwrap_or(&self.tree.root);
        let mut own = Vec::with_capacity(2 * frame.entries.len() + 2);
        own.push(self.first_message(frame));
        push_own_entries(frame, &mut own);
        let schema = self.answer_schema_of(&frame.id);
        own.extend(offer.notice.map(|notice| Message::Notice {
            text: match (instruction::notice(notice), schema) {
                (notice, None) => notice.into(),
                (notice, Some(_)) => format!("{notice} {}", instruction::still_json()).into(),
            },
        }));
        let mut request = ModelRequest {
            instruction: Arc::clone(&agent.instruction),
            messages: own,
            functions: self.functions(agent, offer),
            raise_output_limit: frame.raise_output_limit,
            settings: self.state.setup.settings_of(&frame.agent),
            answer_schema: schema.map(|schema| Arc::clone(schema.value())),
            ..ModelRequest::default()
        };
        let space = self.fit(frame, &mut request);
        if frame.id.is_root() {
            let own = std::mem::take(&mut request.messages);
            for turn in self.history.messages_within(space) {
                request.messages.extend_from_slice(turn);
            }
            request.messages.extend(own);
        }
        request
    }

    /// Builds the first message: the user's question, or a sub-agent's task, with its files.
    fn first_message(&self, frame: &Frame) -> Message {
        Message::User {
            text: if frame.id.is_root() {
                self.question(frame)
            } else {
                instruction::attached(&self.brief(frame), &frame.attachments)
            },
            attachments: frame.attachments.clone(),
        }
    }

    /// Cuts the request until it fits, and returns the space left for earlier turns.
    fn fit(&self, frame: &Frame, request: &mut ModelRequest) -> RequestSpace {
        let mut space = RequestSpace::MAX;
        space.reserve_files(&mut request.messages);
        let known = || self.state.setup.context_tokens_of(&frame.agent);
        let Some(context_tokens) = frame.context_tokens.or_else(known) else {
            return space;
        };
        let most = request_size::bytes_for(context_tokens);
        let needed = request_size::bytes_of(request);
        if needed > most {
            request_size::cut(&mut request.messages, needed - most);
        }
        space.bytes = most.saturating_sub(needed);
        space
    }

    fn functions(&self, agent: &Agent, offer: Offer) -> Arc<[Function]> {
        let delegate = || self.delegate_function();
        match (offer.delegate, offer.tools) {
            (false, false) => Arc::from([]),
            (false, true) => Arc::clone(&agent.functions),
            (true, false) => Arc::from([delegate()]),
            (true, true) => std::iter::once(delegate())
                .chain(agent.functions.iter().cloned())
                .collect(),
        }
    }

    /// Builds the `delegate` function. It mentions attachments only if there are any, so that other requests stay the
    /// same for the provider's cache.
    fn delegate_function(&self) -> Function {
        let finish = if self.has_answer_schema() {
            Finish::Withheld
        } else {
            Finish::Offered
        };
        let function = self.tree.delegate_function(&self.state.rejected_by, finish);
        let mut shown = self.root_attachments().take(Self::MAX_NAMES).peekable();
        match shown.peek() {
            None => function,
            Some(_) => instruction::with_attachments(function, shown),
        }
    }

    /// Builds the root's first message: the question, followed by what applies only to this turn.
    fn question(&self, frame: &Frame) -> Text {
        let question = instruction::attached(&self.state.question, &frame.attachments);
        let setup = &self.state.setup;
        let schema = setup.answer_schema.as_ref();
        if setup.memory.is_none() && setup.environment.is_none() && schema.is_none() {
            return question;
        }
        instruction::question(&QuestionPrompt {
            question: &question,
            memory: setup.memory.as_deref().unwrap_or_default(),
            environment: setup.environment.as_deref().unwrap_or_default(),
            schema: &schema.map_or(String::new(), |schema| schema.value().to_string()),
            delegates: self.tree.mode == TreeMode::Multi,
        })
    }

    /// Builds a sub-agent's first message: the conversation and its task. The conversation is JSON, so no text in it
    /// can imitate the end of the data.
    fn brief(&self, frame: &Frame) -> Text {
        let earlier: Vec<_> = self.history.last(Self::BRIEF_EXCHANGES).collect();
        let notices: Vec<_> = earlier
            .iter()
            .map(|exchange| undone_notice(exchange))
            .collect();
        let mut conversation = Vec::with_capacity(2 * Self::BRIEF_EXCHANGES + 1);
        for (exchange, notice) in earlier.iter().zip(&notices) {
            conversation.push(BriefMessage {
                author: "user",
                text: brief_part(&exchange.question),
            });
            conversation.extend(exchange.answer.as_ref().map(|answer| BriefMessage {
                author: answer.author.as_str(),
                text: brief_part(&answer.text),
            }));
            conversation.extend(notice.as_ref().map(|notice| BriefMessage {
                author: NOTICE_AUTHOR,
                text: notice,
            }));
        }
        conversation.push(BriefMessage {
            author: "user",
            text: &self.state.question,
        });
        let conversation = serde_json::to_string(&conversation).unwrap_or_default();
        let environment = self.state.setup.environment.as_deref();
        instruction::brief(&conversation, environment.unwrap_or_default(), &frame.task)
    }
}

/// Returns the part of an earlier message that a sub-agent sees.
fn brief_part(text: &str) -> &str {
    &text[..text.floor_char_boundary(Turn::BRIEF_BYTES)]
}

fn push_own_entries(frame: &Frame, messages: &mut Vec<Message>) {
    for entry in &frame.entries {
        match entry {
            Entry::Notice(notice) => messages.push(Message::Notice {
                text: instruction::notice(*notice).into(),
            }),
            Entry::InvalidAnswer(problem) => messages.push(Message::Notice {
                text: instruction::invalid_answer(problem),
            }),
            Entry::Reply {
                text,
                slots,
                opaque,
            } => {
                let calls = slots.iter().map(|slot| slot.call.clone()).collect();
                messages.push(Message::Assistant {
                    text: Arc::clone(text),
                    calls,
                    opaque: opaque.clone(),
                });
                messages.extend(slots.iter().filter_map(result_message));
            }
        }
    }
}

fn result_message(slot: &Slot) -> Option<Message> {
    let SlotState::Answered {
        text,
        failed,
        attachments,
        ..
    } = &slot.state
    else {
        return None;
    };
    Some(Message::Result {
        call: slot.call.id.clone(),
        name: Arc::clone(&slot.call.name),
        text: instruction::attached(text, attachments),
        failed: *failed,
        attachments: attachments.clone(),
    })
}
