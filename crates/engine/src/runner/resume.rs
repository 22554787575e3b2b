//! Continues unfinished turns: those that wait for an approval, and those whose process is gone. Each operation
//! acquires the session's lease, reads the session, and replays the turn from its events.

use super::conversation::Conversation;
use super::conversation_state::{CacheState, ResumableTurn};
use super::spans::turn_span;
use super::turn_context::TurnContext;
use super::{
    CancelToken, InterruptedTurnPolicy, Runner, RunnerError, TurnEnd, TurnStatus, UpdateSender,
    append, remote, turn_updates,
};
use crate::turn::{Turn, TurnInput};
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalId, Event, EventRange, PendingApproval, Text, Timestamp,
    TurnId,
};
use std::sync::Arc;
use tracing::Instrument;

impl Conversation {
    /// Continues the last turn if it is unfinished, until it ends or waits for an approval. Fails if the turn started
    /// in another folder or needs agents that are not in the tree; such a turn can be [closed](Self::close).
    pub async fn resume(
        &mut self,
        cancel: &CancelToken,
        updates: &UpdateSender,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        if self.cache == CacheState::Unsaved {
            return Ok(None);
        }
        let lease = self.acquire_lease(cancel, updates).await?;
        self.read().await?;
        self.resume_leased(TurnContext::new(&lease, cancel, updates))
            .await
    }

    /// Looks for a turn with this id in the log. Returns its outcome if it has finished; otherwise resumes it first.
    /// Returns `None` if the log has no such turn.
    pub(super) async fn resume_if_known(
        &mut self,
        id: &TurnId,
        context: TurnContext<'_>,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        match self.turn_status(id).await? {
            TurnStatus::Unknown => Ok(None),
            TurnStatus::Finished(report) => Ok(Some(TurnEnd::Finished(report))),
            TurnStatus::Waiting(_) | TurnStatus::Unfinished => {
                let end = Box::pin(self.resume_leased(context)).await?;
                end.ok_or(RunnerError::NothingPending).map(Some)
            }
        }
    }

    /// Returns the status of a turn of this session according to the log. Another process may have continued it.
    pub async fn turn_status(&self, turn: &TurnId) -> Result<TurnStatus, RunnerError> {
        let runner = Runner {
            parts: Arc::clone(&self.parts),
            interrupted: self.interrupted,
        };
        runner.turn_status(&self.session, turn).await
    }

    /// Closes the last turn as interrupted, if it is unfinished. Its running calls with effects get an unknown outcome,
    /// and its pending approvals are denied.
    pub async fn close(&mut self, updates: &UpdateSender) -> Result<Option<TurnEnd>, RunnerError> {
        let cancel = CancelToken::new();
        let lease = self.acquire_lease(&cancel, updates).await?;
        self.read().await?;
        if self.unfinished.is_none() {
            return Ok(None);
        }
        self.continue_turn(
            Some(TurnInput::Interrupted),
            TurnContext::new(&lease, &cancel, updates),
        )
        .await
        .map(Some)
    }

    /// Cancels a turn that waits for an approval or was interrupted. Its pending approvals are denied, and nothing new
    /// is started.
    pub async fn cancel_turn(
        &mut self,
        turn: &TurnId,
        updates: &UpdateSender,
    ) -> Result<TurnEnd, RunnerError> {
        let cancel = CancelToken::new();
        let lease = self.acquire_lease(&cancel, updates).await?;
        self.read().await?;
        let Some(ResumableTurn { first_seq, .. }) = self.unfinished else {
            return Err(RunnerError::NothingPending);
        };
        let first = EventRange {
            from: first_seq,
            limit: 1,
        };
        let first = self.parts.store.read(&self.session, first).await?;
        if first.first().is_none_or(|first| first.turn != *turn) {
            return Err(RunnerError::NothingPending);
        }
        self.continue_turn(
            Some(TurnInput::Cancelled {
                partial: Vec::new(),
                printed: Vec::new(),
            }),
            TurnContext::new(&lease, &cancel, updates),
        )
        .await
    }

    /// Answers an approval request and continues its turn from the log. Works only in the folder where the request was
    /// made.
    pub async fn answer(
        &mut self,
        request: &ApprovalId,
        answer: ApprovalAnswer,
        by: AnswerSource,
        cancel: &CancelToken,
        updates: &UpdateSender,
    ) -> Result<TurnEnd, RunnerError> {
        let lease = self.acquire_lease(cancel, updates).await?;
        self.read().await?;
        let mut asked = self.waiting().iter().map(|waiting| &waiting.request);
        let Some(asked) = asked.find(|asked| asked.id == *request) else {
            return Err(RunnerError::NotPending {
                request: request.clone(),
            });
        };
        if !answer.fits(asked.question) {
            return Err(RunnerError::WrongAnswer {
                request: request.clone(),
                answer: answer.name(),
            });
        }
        if asked.folder != *self.parts.rules.folder() && !asked.folder.is_empty() {
            return Err(RunnerError::WrongFolder {
                request: request.clone(),
                folder: Text::clone(&asked.folder),
            });
        }
        let input = TurnInput::Answered {
            request: request.clone(),
            answer,
            by,
        };
        self.continue_turn(Some(input), TurnContext::new(&lease, cancel, updates))
            .await
    }

    /// Ends the waiting turn if one of its pending approvals was requested before this time. Returns whether it did.
    pub async fn expire(&mut self, asked_before: Timestamp) -> Result<bool, RunnerError> {
        let (cancel, (updates, _)) = (CancelToken::new(), turn_updates());
        let lease = self.acquire_lease(&cancel, &updates).await?;
        self.read().await?;
        let is_late = |waiting: &PendingApproval| waiting.asked < asked_before;
        if !self.waiting().iter().any(is_late) {
            return Ok(false);
        }
        self.continue_turn(
            Some(TurnInput::Expired),
            TurnContext::new(&lease, &cancel, &updates),
        )
        .await?;
        Ok(true)
    }

    /// Cancels the waiting turn. Its pending approvals are denied.
    pub async fn cancel_waiting(&mut self, updates: &UpdateSender) -> Result<TurnEnd, RunnerError> {
        let cancel = CancelToken::new();
        let meant = self.unfinished.as_ref().map(|last| last.first_seq);
        let lease = self.acquire_lease(&cancel, updates).await?;
        self.read().await?;
        // Another process may have continued the turn in the meantime, and now another turn waits.
        if self.unfinished.as_ref().map(|last| last.first_seq) != meant {
            return Err(RunnerError::NothingPending);
        }
        self.continue_turn(
            Some(TurnInput::Cancelled {
                partial: Vec::new(),
                printed: Vec::new(),
            }),
            TurnContext::new(&lease, &cancel, updates),
        )
        .await
    }

    /// Finishes the last turn before a new one starts. Fails if it waits for an approval. The last turn's updates are
    /// not published to the subscriber of the new one: a user interface that wants to show them [resumes](Self::resume)
    /// the turn first. Cancelling the new turn does not cancel the last one, which may belong to another client; the
    /// last turn then stays unfinished in the log.
    pub(super) async fn finish_last_turn(
        &mut self,
        context: TurnContext<'_>,
    ) -> Result<(), RunnerError> {
        if self.unfinished.is_none() {
            return Ok(());
        }
        context.refuse_duplicate().await?;
        let (last_turn_token, (discarded, _)) = (CancelToken::new(), turn_updates());
        let last_turn = TurnContext::new(context.lease, &last_turn_token, &discarded);
        let end = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(RunnerError::CancelledWhileQueued),
            end = self.resume_leased(last_turn) => end?,
        };
        match end {
            Some(TurnEnd::Waiting(waiting)) => Err(match waiting.into_iter().next() {
                Some(first) => RunnerError::ApprovalPending {
                    request: first.request.id,
                },
                None => RunnerError::NothingPending,
            }),
            Some(TurnEnd::Finished(_)) => self.read().await,
            None => Ok(()),
        }
    }

    /// Resumes the unfinished turn of a session that was leased and read, unless it waits for an approval.
    async fn resume_leased(
        &mut self,
        context: TurnContext<'_>,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        match &self.unfinished {
            None => Ok(None),
            Some(last) if last.is_parked => Ok(Some(TurnEnd::Waiting(last.waiting.clone()))),
            Some(_) => self.continue_turn(None, context).await.map(Some),
        }
    }

    fn check_resumable(&self, turn: &Turn, started_in: Option<Text>) -> Result<(), RunnerError> {
        let session = self.session.clone();
        if let Some(folder) = started_in.filter(|folder| folder != self.parts.rules.folder()) {
            return Err(RunnerError::InterruptedInOtherFolder { session, folder });
        }
        match turn.missing_agent().cloned() {
            Some(agent) => Err(RunnerError::AgentMissing { session, agent }),
            None => Ok(()),
        }
    }

    /// Replays the unfinished turn, passes it the input if there is one, and runs it until it ends or waits for an
    /// approval.
    async fn continue_turn(
        &mut self,
        input: Option<TurnInput>,
        context: TurnContext<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        let Some(ResumableTurn { first_seq, .. }) = self.unfinished.take() else {
            return Err(RunnerError::NothingPending);
        };
        self.cache = CacheState::Stale;
        let (mut turn, folder) = self.replay(first_seq).await?;
        let mut cancelled_tasks = None;
        let before = match &input {
            Some(TurnInput::Cancelled { .. } | TurnInput::Expired) => {
                cancelled_tasks = Some(remote::RemoteTasks::of(&turn));
                Vec::new()
            }
            Some(TurnInput::Interrupted) => {
                remote::fetch_results(&self.parts, &self.user, &turn).await?
            }
            _ => {
                self.check_resumable(&turn, folder)?;
                match self.interrupted {
                    InterruptedTurnPolicy::Ask if !turn.is_parked() => vec![TurnInput::Restored],
                    InterruptedTurnPolicy::Resume | InterruptedTurnPolicy::Ask => {
                        vec![TurnInput::Resumed]
                    }
                }
            }
        };
        let now = self.parts.clock.now();
        let inputs = before.into_iter().chain(input);
        let events: Vec<Event> = inputs.flat_map(|input| turn.accept(input, now)).collect();
        let span = turn_span(&self.session, turn.id());
        let first = append(&self.parts, events, context.updates);
        let first = first.instrument(span.clone()).await?;
        let context = TurnContext {
            commit: None,
            ..context
        };
        let driving = self.drive(&mut turn, first, context);
        let driving = context.while_leased(&self.session, driving);
        let end = driving.instrument(span).await?;
        if let Some(remote_tasks) = cancelled_tasks {
            remote_tasks.cancel(&self.parts).await;
        }
        self.next_seq = turn.next_seq();
        Ok(match end {
            TurnEnd::Waiting(waiting) => self.park(first_seq, waiting),
            finished => finished,
        })
    }
}
