//! Reports the events of a turn to the caller while the turn runs.

use crate::messages;
use a2a::Part;
use lango_a2a::server::{ArtifactChunk, ReportError, Reporter, StatusMessage};
use lango_core::EventBody;
use lango_engine::{TurnUpdate, UpdateReceiver};

/// Converts the events of a turn into reports.
pub(crate) struct TurnEvents<'a> {
    reporter: &'a Reporter,
    /// Whether part of the answer has been streamed.
    has_streamed: bool,
}

impl<'a> TurnEvents<'a> {
    pub(crate) fn new(reporter: &'a Reporter) -> Self {
        Self {
            reporter,
            has_streamed: false,
        }
    }

    /// Reports all events, and passes each to `publish`. After a failed report it only publishes the rest.
    pub(crate) async fn report(
        mut self,
        mut events: UpdateReceiver,
        publish: impl Fn(&TurnUpdate),
    ) {
        let mut is_reporting = true;
        while let Some(update) = events.recv().await {
            publish(&update);
            if is_reporting && self.report_event(update).await.is_err() {
                is_reporting = false;
            }
        }
    }

    async fn report_event(&mut self, update: TurnUpdate) -> Result<(), ReportError> {
        match update {
            TurnUpdate::Stored(batch) => {
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
            TurnUpdate::Draft { text, .. } => {
                let mut chunk = ArtifactChunk::text(messages::ANSWER, text.as_str());
                if !self.has_streamed {
                    chunk = chunk.named("answer");
                    chunk.is_appended = false;
                }
                self.has_streamed = true;
                self.reporter.artifact(chunk).await
            }
            TurnUpdate::DraftWithdrawn if !self.has_streamed => Ok(()),
            TurnUpdate::DraftWithdrawn => {
                self.has_streamed = false;
                let nothing = vec![Part::text("")];
                self.reporter
                    .artifact(ArtifactChunk {
                        is_last: false,
                        ..ArtifactChunk::whole(messages::ANSWER, nothing)
                    })
                    .await
            }
            TurnUpdate::ModelStarted { .. }
            | TurnUpdate::ModelProgress { .. }
            | TurnUpdate::ToolOutput { .. } => Ok(()),
            TurnUpdate::Queued => {
                let text = "queued behind another task of this conversation";
                self.reporter.working(text.to_owned()).await
            }
            TurnUpdate::Retrying { agent, .. } => {
                let text = format!("{agent} retries its model call");
                self.reporter.working(text).await
            }
        }
    }
}
