//! Masks secret values in the events of a call. A value can be split across chunks of a stream, so the chunks are
//! masked as one text.

use lango_core::{RemoteAnswer, RemoteError, RemoteEvent, RemoteThread};
use lango_secrets::{MaskTextStream, Masks};
use std::borrow::Cow;

type Event = Result<RemoteEvent, RemoteError>;

/// The masks of one call.
pub(crate) struct EventMasks {
    masks: Masks,
    text: Option<MaskTextStream>,
}

impl EventMasks {
    pub(super) fn new(masks: Masks) -> Self {
        Self { masks, text: None }
    }

    /// Masks an event. Returns several events if text that was held back must be sent before the answer.
    pub(super) fn mask(&mut self, event: Event) -> Vec<Event> {
        match event {
            Ok(RemoteEvent::Text(chunk)) => {
                let masks = &self.masks;
                let text = self.text.get_or_insert_with(|| masks.text_stream());
                text_event(text.push(&chunk)).into_iter().collect()
            }
            Ok(RemoteEvent::Withdrawn) => {
                self.text = None;
                vec![Ok(RemoteEvent::Withdrawn)]
            }
            Ok(RemoteEvent::Accepted(thread)) => {
                vec![Ok(RemoteEvent::Accepted(self.mask_thread(thread)))]
            }
            Ok(RemoteEvent::Answer(answer)) => {
                let rest = self.text.take().map(|mut text| text.finish());
                let rest = rest.and_then(text_event).into_iter();
                let answer = self.mask_answer(answer);
                rest.chain([Ok(RemoteEvent::Answer(answer))]).collect()
            }
            // The detail of an error is already masked.
            Err(error) => vec![Err(error)],
        }
    }

    fn mask_answer(&self, mut answer: RemoteAnswer) -> RemoteAnswer {
        self.masks.mask_string(&mut answer.text);
        for file in &mut answer.files {
            self.masks.mask_string(&mut file.name);
            if let Cow::Owned(masked) = self.masks.mask_bytes(&file.bytes) {
                file.bytes = masked.into();
            }
        }
        answer.thread = answer.thread.map(|thread| self.mask_thread(thread));
        answer
    }

    /// Masks the ids that the server chose, because they are stored. If a server puts the token into an id, the
    /// conversation cannot be continued.
    fn mask_thread(&self, thread: RemoteThread) -> RemoteThread {
        RemoteThread {
            context: self.masks.mask_text(&thread.context).into(),
            task: thread.task.map(|task| self.masks.mask_text(&task).into()),
        }
    }
}

fn text_event(text: String) -> Option<Event> {
    (!text.is_empty()).then_some(Ok(RemoteEvent::Text(text)))
}
