//! Continues unfinished turns: those that wait for an approval, and those whose process is gone. Each operation
//! acquires the session's lease, reads the session, and replays the turn from its events.

use super::conversation::Conversation;
use super::conversation_state::{CacheState, SessionOrigin, TurnIdSource, UnfinishedTurn};
use super::spans::turn_span;
use super::{
    CancelToken, InterruptedTurnPolicy, Output, Runner, RunnerError, TurnCommit, TurnEnd,
    TurnStatus, TurnUpdate, append, check_input, remote,
};
use crate::turn::{Turn, TurnInput};
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalId, BoxLease, BusyPolicy, Event, EventRange,
    PendingApproval, Text, Timestamp, TurnId, UserInput,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::Instrument;

/// How long to wait for the lease before publishing that the turn is queued.
const QUEUED_NOTICE_DELAY: Duration = Duration::from_millis(200);

impl Conversation {
    /// Continues the last turn if it is unfinished, until it ends or waits for an approval. Fails if the turn started
    /// in another folder or needs agents that are not in the tree; such a turn can be [closed](Self::close).
    pub async fn resume(
        &mut self,
        cancel: &CancelToken,
        updates: &mpsc::Sender<TurnUpdate>,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        if self.cache == CacheState::Unsaved {
            return Ok(None);
        }
        let lease = self.acquire_lease(cancel, updates).await?;
        self.read().await?;
        self.resume_with_lease(&lease, cancel, updates).await
    }

    /// Runs a turn with this id. If the log already has the turn, resumes it or returns its outcome instead. So a
    /// caller that does not know whether the turn was started can call this again, even concurrently from several
    /// replicas.
    ///
    /// A [current](Self::is_current) conversation looks for the turn only if another process has appended to the log.
    /// So do not pass it the id of a turn that it ran itself.
    ///
    /// If there is a `commit`, it stores the first and the last events of the turn, unless the turn is resumed.
    pub async fn turn_once(
        &mut self,
        id: TurnId,
        question: impl Into<UserInput>,
        cancel: &CancelToken,
        updates: &mpsc::Sender<TurnUpdate>,
        commit: Option<&dyn TurnCommit>,
    ) -> Result<TurnEnd, RunnerError> {
        let question = question.into();
        check_input(&question)?;
        let lease = self.acquire_lease(cancel, updates).await?;
        let output = Output { updates, commit };
        if !self.is_current()
            && self.read_or_create(output).await? == SessionOrigin::Stored
            && let Some(end) = self.resume_if_known(&id, &lease, cancel, updates).await?
        {
            return Ok(end);
        }
        let id = (id, TurnIdSource::Caller);
        self.turn_with_lease(id, question, &lease, cancel, output)
            .await
    }

    /// Looks for a turn with this id in the log. Returns its outcome if it has finished; otherwise resumes it first.
    /// Returns `None` if the log has no such turn.
    pub(super) async fn resume_if_known(
        &mut self,
        id: &TurnId,
        lease: &BoxLease,
        cancel: &CancelToken,
        updates: &mpsc::Sender<TurnUpdate>,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        match self.turn_status(id).await? {
            TurnStatus::Unknown => Ok(None),
            TurnStatus::Finished(report) => Ok(Some(TurnEnd::Finished(report))),
            TurnStatus::Waiting(_) | TurnStatus::Unfinished => {
                let end = Box::pin(self.resume_with_lease(lease, cancel, updates)).await?;
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
    pub async fn close(
        &mut self,
        updates: &mpsc::Sender<TurnUpdate>,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        let cancel = CancelToken::new();
        let lease = self.acquire_lease(&cancel, updates).await?;
        self.read().await?;
        if self.unfinished.is_none() {
            return Ok(None);
        }
        self.continue_turn(Some(TurnInput::Interrupted), &lease, &cancel, updates)
            .await
            .map(Some)
    }

    /// Cancels a turn that waits for an approval or was interrupted. Its pending approvals are denied, and nothing new
    /// is started.
    pub async fn cancel_turn(
        &mut self,
        turn: &TurnId,
        updates: &mpsc::Sender<TurnUpdate>,
    ) -> Result<TurnEnd, RunnerError> {
        let cancel = CancelToken::new();
        let lease = self.acquire_lease(&cancel, updates).await?;
        self.read().await?;
        let Some(UnfinishedTurn { first_seq, .. }) = self.unfinished else {
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
        self.continue_turn(Some(TurnInput::Cancelled), &lease, &cancel, updates)
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
        updates: &mpsc::Sender<TurnUpdate>,
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
        self.continue_turn(Some(input), &lease, cancel, updates)
            .await
    }

    /// Ends the waiting turn if one of its pending approvals was requested before this time. Returns whether it did.
    pub async fn expire(&mut self, asked_before: Timestamp) -> Result<bool, RunnerError> {
        let (cancel, (updates, _)) = (CancelToken::new(), mpsc::channel(1));
        let lease = self.acquire_lease(&cancel, &updates).await?;
        self.read().await?;
        let is_late = |waiting: &PendingApproval| waiting.asked < asked_before;
        if !self.waiting().iter().any(is_late) {
            return Ok(false);
        }
        self.continue_turn(Some(TurnInput::Expired), &lease, &cancel, &updates)
            .await?;
        Ok(true)
    }

    /// Cancels the waiting turn. Its pending approvals are denied.
    pub async fn cancel_waiting(
        &mut self,
        updates: &mpsc::Sender<TurnUpdate>,
    ) -> Result<TurnEnd, RunnerError> {
        let cancel = CancelToken::new();
        let meant = self.unfinished.as_ref().map(|last| last.first_seq);
        let lease = self.acquire_lease(&cancel, updates).await?;
        self.read().await?;
        // Another process may have continued the turn in the meantime, and now another turn waits.
        if self.unfinished.as_ref().map(|last| last.first_seq) != meant {
            return Err(RunnerError::NothingPending);
        }
        self.continue_turn(Some(TurnInput::Cancelled), &lease, &cancel, updates)
            .await
    }

    /// Acquires the session's lease. The busy policy decides whether to wait for its owner.
    pub(super) async fn acquire_lease(
        &self,
        cancel: &CancelToken,
        updates: &mpsc::Sender<TurnUpdate>,
    ) -> Result<BoxLease, RunnerError> {
        let busy_policy = self.busy_policy;
        let acquiring = self.parts.store.acquire(&self.session, busy_policy);
        tokio::pin!(acquiring);
        if busy_policy != BusyPolicy::Refuse {
            let soon = tokio::time::timeout(QUEUED_NOTICE_DELAY, &mut acquiring).await;
            if let Ok(lease) = soon {
                return Ok(lease?);
            }
            let _ = updates.send(TurnUpdate::Queued).await;
        }
        tokio::select! {
            lease = &mut acquiring => Ok(lease?),
            () = cancel.cancelled() => Err(RunnerError::CancelledWhileQueued),
        }
    }

    /// Finishes the last turn before a new one starts. Fails if it waits for an approval. The last turn's updates are
    /// not published to the subscriber of the new one: a user interface that wants to show them [resumes](Self::resume)
    /// the turn first. Cancelling the new turn does not cancel the last one, which may belong to another client; the
    /// last turn then stays unfinished in the log.
    pub(super) async fn finish_last_turn(
        &mut self,
        lease: &BoxLease,
        cancel: &CancelToken,
        output: Output<'_>,
    ) -> Result<(), RunnerError> {
        let (discarded, _) = mpsc::channel(1);
        if self.unfinished.is_none() {
            return Ok(());
        }
        output.refuse_duplicate().await?;
        let last_turn_token = CancelToken::new();
        let end = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(RunnerError::CancelledWhileQueued),
            end = self.resume_with_lease(lease, &last_turn_token, &discarded) => end?,
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

    async fn resume_with_lease(
        &mut self,
        lease: &BoxLease,
        cancel: &CancelToken,
        updates: &mpsc::Sender<TurnUpdate>,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        match &self.unfinished {
            None => Ok(None),
            Some(last) if last.is_parked => Ok(Some(TurnEnd::Waiting(last.waiting.clone()))),
            Some(_) => self
                .continue_turn(None, lease, cancel, updates)
                .await
                .map(Some),
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
        lease: &BoxLease,
        cancel: &CancelToken,
        updates: &mpsc::Sender<TurnUpdate>,
    ) -> Result<TurnEnd, RunnerError> {
        let Some(UnfinishedTurn { first_seq, .. }) = self.unfinished.take() else {
            return Err(RunnerError::NothingPending);
        };
        self.cache = CacheState::Stale;
        let (mut turn, folder) = self.replay(first_seq).await?;
        let mut cancelled_tasks = None;
        let before = match &input {
            Some(TurnInput::Cancelled | TurnInput::Expired) => {
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
        let first = append(&self.parts, events, updates);
        let first = first.instrument(span.clone()).await?;
        let commit = None;
        let output = Output { updates, commit };
        let driving = self.drive(&mut turn, first, lease, cancel, output);
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
