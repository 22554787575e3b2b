//! Handles a turn whose database was restored from a backup, or copied, while the turn was running. The turn may have
//! continued in the original database, so even repeating a model call could repeat effects. The user is asked whether
//! to continue it.

use super::Turn;
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalId, ApprovalQuestion, ApprovalRequest, CallId, Effect,
    EventBody, FrameId, Inspection, PendingApproval, Risk, Text, Timestamp, ToolName, TurnFault,
};
use serde_json::json;
use std::sync::Arc;

/// The state of the question about a restored turn.
#[derive(Debug, PartialEq)]
pub(super) enum RestoreQuestion {
    /// The next process that opens the turn must ask the question.
    Marked,
    Asked {
        request: Box<ApprovalRequest>,
        since: Timestamp,
    },
}

impl RestoreQuestion {
    pub(crate) fn asked(request: &ApprovalRequest, since: Timestamp) -> Self {
        Self::Asked {
            request: Box::new(request.clone()),
            since,
        }
    }

    pub(crate) fn is_asked(&self) -> bool {
        matches!(self, Self::Asked { .. })
    }

    /// Whether the answer to this request settles the question. A turn that only waited for approvals continues with
    /// any answer, because the user gave it after the restore.
    pub(crate) fn is_settled_by(&self, answered: &ApprovalId) -> bool {
        match self {
            Self::Marked => true,
            Self::Asked { request, .. } => request.id == *answered,
        }
    }
}

impl Turn {
    /// Asks the user whether to continue the turn, because the database is a copy.
    pub(super) fn restored(&mut self) {
        let detail = "the database was restored or copied during the turn".to_owned();
        self.correct(&FrameId::root(), TurnFault::Restored, None, detail);
        self.resume();
    }

    /// Asks the question if the turn is marked. Returns whether the turn now waits for the answer.
    pub(super) fn ask_if_restored(&mut self) -> bool {
        match self.state.restored {
            Some(RestoreQuestion::Marked) if !self.is_parked() => {
                let body = EventBody::ApprovalRequested(self.question_about_turn());
                self.emit_as_root(FrameId::root(), body);
                true
            }
            Some(RestoreQuestion::Asked { .. }) => true,
            Some(RestoreQuestion::Marked) | None => false,
        }
    }

    fn question_about_turn(&self) -> ApprovalRequest {
        let call = CallId::from("turn");
        ApprovalRequest {
            id: self.approval_id(&call, ApprovalQuestion::ContinueTurn),
            agent: self.tree.root.name.clone(),
            call,
            tool: ToolName::from("turn"),
            arguments: Arc::new(json!({ "message": *self.state.question })),
            inspection: Inspection::default(),
            digest: "".into(),
            folder: Text::clone(self.rules.folder()),
            effect: Effect::NonIdempotent,
            risk: Risk::Dangerous,
            question: ApprovalQuestion::ContinueTurn,
            reason: "the database was restored or copied while this turn was running; what the turn did afterwards is unknown".into(),
            pattern: None,
        }
    }

    /// Returns the question about the turn, if it is pending.
    pub(super) fn waiting_turn(&self) -> Option<PendingApproval> {
        match &self.state.restored {
            Some(RestoreQuestion::Asked { request, since }) => Some(PendingApproval {
                session: self.session.clone(),
                turn: self.id.clone(),
                asked: *since,
                request: (**request).clone(),
            }),
            Some(RestoreQuestion::Marked) | None => None,
        }
    }

    /// Processes the answer to the question about the turn: continues it, or ends it as interrupted.
    pub(super) fn settle_turn(
        &mut self,
        request: &ApprovalId,
        answer: &ApprovalAnswer,
        by: &AnswerSource,
    ) {
        self.record_answer(&FrameId::root(), request, answer, by);
        match answer {
            ApprovalAnswer::Retry => self.resume(),
            _ => self.interrupt(),
        }
    }
}
