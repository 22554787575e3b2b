//! What a model is sent: a pure function of the log and the configuration.
//!
//! The orchestrator sees the earlier turns and its own delegations with their results, not the tool chatter. A sub-agent
//! sees the conversation as data, its task, and its own calls. Nobody's words are shown to another as its own or as the
//! person's: an answer that a sub-agent gave the person itself comes back as the result of the delegation that it was.

use super::Turn;
use super::frame::{Entry, Frame, Slot, SlotState};
use super::offer::Offer;
use super::room::{self, Room};
use super::steps::ModelStep;
use crate::instruction::{self, Finish, QuestionPrompt};
use crate::tree::{Agent, Mode};
use lango_core::{Function, Message, ModelRequest, Text};
use serde::Serialize;
use std::sync::Arc;

/// One message of the conversation as a sub-agent sees it.
#[derive(Serialize)]
struct Said<'a> {
    author: &'a str,
    text: &'a str,
}

impl Turn {
    /// Earlier exchanges that a sub-agent is shown; the orchestrator's task is to carry the rest.
    const BRIEF_EXCHANGES: usize = 4;
    /// The beginning of an earlier message that a sub-agent is shown.
    const BRIEF_BYTES: usize = 2000;

    /// What the model of this step is sent.
    pub fn request(&self, step: &ModelStep) -> ModelRequest {
        match self.state.frame(&step.frame) {
            Some(frame) => self.request_of(frame, step.offer),
            None => ModelRequest::default(),
        }
    }

    /// Estimates the tokens of a frame's next request, without the results that came after event number `until`.
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
        let late_bytes = late.map(|result| room::message_bytes(&result)).sum();
        let bytes = room::bytes_of(&self.request_of(frame, offer));
        room::tokens(bytes.saturating_sub(late_bytes))
    }

    pub(super) fn request_of(&self, frame: &Frame, offer: Offer) -> ModelRequest {
        let agent = self
            .tree
            .agent(frame.agent.as_str())
            .unwrap_or(&self.tree.root);
        let mut own = Vec::with_capacity(2 * frame.entries.len() + 2);
        own.push(self.first_message(frame));
        own_steps(frame, &mut own);
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
        let room = self.make_room(frame, &mut request);
        if frame.id.is_root() {
            let own = std::mem::take(&mut request.messages);
            for turn in self.history.shown(room) {
                request.messages.extend_from_slice(turn);
            }
            request.messages.extend(own);
        }
        request
    }

    /// The question of the person, or the task of a sub-agent, with its files.
    fn first_message(&self, frame: &Frame) -> Message {
        Message::User {
            text: match frame.id.is_root() {
                true => self.question(frame),
                false => instruction::attached(&self.brief(frame), &frame.attachments),
            },
            attachments: frame.attachments.clone(),
        }
    }

    /// Cuts what has to be sent until it fits, and gives the room that is left for earlier turns.
    fn make_room(&self, frame: &Frame, request: &mut ModelRequest) -> Room {
        let mut room = Room::MOST;
        room.take_files(&mut request.messages);
        let known = || self.state.setup.context_tokens_of(&frame.agent);
        let Some(context_tokens) = frame.context_tokens.or_else(known) else {
            return room;
        };
        let most = room::bytes_for(context_tokens);
        let needed = room::bytes_of(request);
        if needed > most {
            room::cut(&mut request.messages, needed - most);
        }
        room.bytes = most.saturating_sub(needed);
        room
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

    /// The control function. It speaks of files only where there are some: what is sent without them stays the same.
    fn delegate_function(&self) -> Function {
        let finish = match self.has_answer_schema() {
            true => Finish::Withheld,
            false => Finish::Offered,
        };
        let function = self.tree.delegate_function(&self.state.refused, finish);
        let mut shown = self.shown_to_root().take(Self::NAMES_SHOWN).peekable();
        match shown.peek() {
            None => function,
            Some(_) => instruction::with_attachments(function, shown),
        }
    }

    /// The user's question, with what the root is told only for this turn below it.
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
            delegates: self.tree.mode == Mode::Multi,
        })
    }

    /// A sub-agent's first message: what was said, as JSON in which nothing can pose as the end of the data, and its task.
    fn brief(&self, frame: &Frame) -> Text {
        let mut said = Vec::with_capacity(2 * Self::BRIEF_EXCHANGES + 1);
        for exchange in self.history.last(Self::BRIEF_EXCHANGES) {
            said.push(Said {
                author: "user",
                text: beginning(&exchange.question),
            });
            said.extend(exchange.answer.as_ref().map(|answer| Said {
                author: answer.author.as_str(),
                text: beginning(&answer.text),
            }));
        }
        said.push(Said {
            author: "user",
            text: &self.state.question,
        });
        let conversation = serde_json::to_string(&said).unwrap_or_default();
        let environment = self.state.setup.environment.as_deref();
        instruction::brief(&conversation, environment.unwrap_or_default(), &frame.task)
    }
}

/// As much of an earlier message as a sub-agent is shown.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(Turn::BRIEF_BYTES)]
}

fn own_steps(frame: &Frame, messages: &mut Vec<Message>) {
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
