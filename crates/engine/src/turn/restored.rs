//! A turn whose database was restored from a backup, or copied, while the turn ran. The turn may have gone on in the original
//! database, so repeating even a model call could repeat effects. The user is asked whether it goes on.

use super::Turn;
use lango_core::{
    Answer, AnsweredBy, ApprovalId, ApprovalRequest, Asks, CallId, Effect, EventBody, Fault,
    FrameId, Inspection, Risk, Text, Timestamp, ToolName, Waiting,
};
use serde_json::json;
use std::sync::Arc;

/// The state of the question about a restored turn.
#[derive(Debug, PartialEq)]
pub(super) enum Restored {
    /// The next process that opens the turn asks it.
    Marked,
    Asked {
        request: Box<ApprovalRequest>,
        since: Timestamp,
    },
}

impl Restored {
    pub fn asked(request: &ApprovalRequest, since: Timestamp) -> Self {
        Self::Asked {
            request: Box::new(request.clone()),
            since,
        }
    }

    pub fn is_asked(&self) -> bool {
        matches!(self, Self::Asked { .. })
    }

    /// Returns whether the answer to this request ends it. A turn that only waited for approvals goes on with any answer: the
    /// user decided after the restore.
    pub fn is_over(&self, answered: &ApprovalId) -> bool {
        match self {
            Self::Marked => true,
            Self::Asked { request, .. } => request.id == *answered,
        }
    }
}

impl Turn {
    /// Asks the user whether the turn goes on, because the database is a copy.
    pub(super) fn restored(&mut self) {
        let detail = "the database is a copy that was made in the middle of the turn".to_owned();
        self.correct(&FrameId::root(), Fault::Restored, None, detail);
        self.resume();
    }

    /// Asks about a turn that is marked. Returns whether the turn waits for the user because of that.
    pub(super) fn ask_if_restored(&mut self) -> bool {
        match self.state.restored {
            Some(Restored::Marked) if !self.is_parked() => {
                let body = EventBody::ApprovalRequested(self.question_about_turn());
                self.emit_as_root(FrameId::root(), body);
                true
            }
            Some(Restored::Asked { .. }) => true,
            Some(Restored::Marked) | None => false,
        }
    }

    fn question_about_turn(&self) -> ApprovalRequest {
        let call = CallId::from("turn");
        ApprovalRequest {
            id: self.approval_id(&call, Asks::Turn),
            agent: self.tree.root.name.clone(),
            call,
            tool: ToolName::from("turn"),
            arguments: Arc::new(json!({ "message": *self.state.question })),
            inspection: Inspection::default(),
            digest: "".into(),
            folder: Text::clone(self.rules.folder()),
            effect: Effect::Effect,
            risk: Risk::Dangerous,
            asks: Asks::Turn,
            reason: "the database is a copy that was made while this turn ran; what it did after that is unknown".into(),
            pattern: None,
        }
    }

    /// Returns the question about the turn, if the user is asked it now.
    pub(super) fn waiting_turn(&self) -> Option<Waiting> {
        match &self.state.restored {
            Some(Restored::Asked { request, since }) => Some(Waiting {
                session: self.session.clone(),
                turn: self.id.clone(),
                asked: *since,
                request: (**request).clone(),
            }),
            Some(Restored::Marked) | None => None,
        }
    }

    /// Takes the answer to the question about the turn: it goes on, or ends as interrupted.
    pub(super) fn settle_turn(&mut self, request: &ApprovalId, answer: &Answer, by: &AnsweredBy) {
        self.note_answer(&FrameId::root(), request, answer, by);
        match answer {
            Answer::Retry => self.resume(),
            _ => self.interrupt(),
        }
    }
}
