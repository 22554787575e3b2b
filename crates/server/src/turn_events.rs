//! Reports the events of a turn while it runs, and its end.

use crate::messages;
use a2a::Part;
use lango_a2a::server::{ArtifactChunk, ReportError, Reporter, StatusMessage};
use lango_core::EventBody;
use lango_engine::Shown;
use tokio::sync::mpsc;

/// The events of a turn, on their way to the caller.
pub(crate) struct TurnEvents<'a> {
    reporter: &'a Reporter,
    /// Whether a part of the answer was streamed.
    has_streamed: bool,
}

impl<'a> TurnEvents<'a> {
    pub fn new(reporter: &'a Reporter) -> Self {
        Self {
            reporter,
            has_streamed: false,
        }
    }

    /// Reports all events. After an error the rest is only received, so that the turn does not wait.
    pub async fn report(mut self, mut events: mpsc::Receiver<Shown>, shown: impl Fn(&Shown)) {
        let mut is_reporting = true;
        while let Some(item) = events.recv().await {
            shown(&item);
            if is_reporting && self.report_event(item).await.is_err() {
                is_reporting = false;
            }
        }
    }

    async fn report_event(&mut self, item: Shown) -> Result<(), ReportError> {
        match item {
            Shown::Stored(batch) => {
                for event in batch.iter() {
                    match &event.body {
                        EventBody::UserMessage { .. } => {
                            self.reporter.working(StatusMessage::empty()).await?
                        }
                        EventBody::AgentDelegated { agent, .. } => {
                            let text = format!("{agent} is working");
                            self.reporter.working(text).await?;
                        }
                        _ => {}
                    }
                }
                Ok(())
            }
            Shown::Draft { text, .. } => {
                let mut chunk = ArtifactChunk::more(messages::ANSWER, text.as_str());
                if !self.has_streamed {
                    chunk = chunk.named("answer");
                    chunk.is_appended = false;
                }
                self.has_streamed = true;
                self.reporter.artifact(chunk).await
            }
            Shown::Withdrawn if !self.has_streamed => Ok(()),
            Shown::Withdrawn => {
                self.has_streamed = false;
                let nothing = vec![Part::text("")];
                self.reporter
                    .artifact(ArtifactChunk {
                        is_last: false,
                        ..ArtifactChunk::whole(messages::ANSWER, nothing)
                    })
                    .await
            }
            Shown::InLine => {
                let text = "queued behind another task of this conversation";
                self.reporter.working(text.to_owned()).await
            }
            Shown::Retrying { agent, .. } => {
                let text = format!("{agent} retries its model call");
                self.reporter.working(text).await
            }
        }
    }
}
