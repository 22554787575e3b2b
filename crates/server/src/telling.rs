//! What is told of a turn while it runs, and at its end.

use crate::words;
use a2a::Part;
use lango_a2a::server::{Piece, Report, ReportError, Reports, Words};
use lango_core::EventBody;
use lango_engine::Shown;
use tokio::sync::mpsc;

/// Tells what became of a task. That its answer has no room there does not keep its end from being told.
pub(crate) async fn tell_all(reports: &Reports, ended: Vec<Report>) -> Result<(), ReportError> {
    let mut has_no_room = false;
    for report in ended {
        match report {
            Report::Artifact(piece) => has_no_room = reports.artifact(piece).await.is_err(),
            Report::Completed(_) if has_no_room => {
                let words = "it is done; the answer is too long to be kept with the task";
                reports.completed(words).await?;
            }
            report => reports.tell(report).await?,
        }
    }
    Ok(())
}

/// Passes on what a turn shows.
pub(crate) struct Telling<'a> {
    reports: &'a Reports,
    /// What was given of the answer.
    streamed: String,
}

impl<'a> Telling<'a> {
    pub fn new(reports: &'a Reports) -> Self {
        Self {
            reports,
            streamed: String::new(),
        }
    }

    /// Passes all of it on; gives what was streamed of the answer. After an error the rest is only taken in, so that the
    /// turn does not wait, and the answer is given whole at the end.
    pub async fn all(mut self, mut shown: mpsc::Receiver<Shown>) -> String {
        let mut is_told = true;
        while let Some(item) = shown.recv().await {
            if is_told && self.tell(item).await.is_err() {
                is_told = false;
                self.streamed.clear();
            }
        }
        self.streamed
    }

    async fn tell(&mut self, item: Shown) -> Result<(), ReportError> {
        match item {
            Shown::Stored(batch) => {
                for event in batch.iter() {
                    match &event.body {
                        EventBody::UserMessage { .. } => {
                            self.reports.working(Words::none()).await?
                        }
                        EventBody::AgentDelegated { agent, .. } => {
                            let words = format!("{agent} is at work");
                            self.reports.working(words).await?;
                        }
                        _ => {}
                    }
                }
                Ok(())
            }
            Shown::Draft { text, .. } => {
                let mut piece = Piece::more(words::ANSWER, text.as_str());
                if self.streamed.is_empty() {
                    piece = piece.named("answer");
                    piece.is_appended = false;
                }
                self.streamed.push_str(&text);
                self.reports.artifact(piece).await
            }
            Shown::Withdrawn if self.streamed.is_empty() => Ok(()),
            Shown::Withdrawn => {
                self.streamed.clear();
                let nothing = vec![Part::text("")];
                self.reports
                    .artifact(Piece {
                        is_last: false,
                        ..Piece::whole(words::ANSWER, nothing)
                    })
                    .await
            }
            Shown::InLine => {
                let words = "it waits for another task of this conversation";
                self.reports.working(words.to_owned()).await
            }
            Shown::Retrying { agent, .. } => {
                let words = format!("{agent} asks its model again");
                self.reports.working(words).await
            }
        }
    }
}
