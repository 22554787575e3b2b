//! Going on with a turn that has no outcome yet: one that waits for a person, or one whose process is gone. Whoever does it
//! holds the session, reads how it stands, and replays the turn from its events.

use super::conversation::{Conversation, LeftOver, Origin, Place, TurnIdSource};
use super::{
    InterruptedTurns, Output, Runner, RunnerError, Shown, Standing, Stop, TurnCommit, TurnEnd,
    append, check_input, remote,
};
use crate::turn::{Input, Turn};
use lango_core::{
    Answer, AnsweredBy, ApprovalId, BoxLease, BusyPolicy, Event, Page, Text, Timestamp, TurnId,
    UserInput, Waiting,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long somebody waits in line before those who watch are told so.
const QUIET_IN_LINE: Duration = Duration::from_millis(200);

impl Conversation {
    /// Goes on with the last turn, if it has no outcome: until it ends, or until only a person can go on. One that was begun
    /// in another folder, or whose agents are not there, does not go on here; it can be [closed](Self::close).
    pub async fn resume(
        &mut self,
        stop: &Stop,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        if self.place == Place::Unsaved {
            return Ok(None);
        }
        let lease = self.take_hold(stop, shown).await?;
        self.read().await?;
        self.resume_held(&lease, stop, shown).await
    }

    /// Runs a turn under this id. If the log has that turn, resumes it or returns its outcome instead, so a caller that does not
    /// know whether it was started can ask again, also from several replicas at once.
    ///
    /// A [current](Self::is_current) conversation does not look for the turn unless another process has appended to the log. So do
    /// not pass it the id of a turn that it ran itself.
    ///
    /// If there is a `commit`, it stores the first and the last events of the turn, unless the turn is resumed.
    pub async fn turn_once(
        &mut self,
        id: TurnId,
        question: impl Into<UserInput>,
        stop: &Stop,
        shown: &mpsc::Sender<Shown>,
        commit: Option<&dyn TurnCommit>,
    ) -> Result<TurnEnd, RunnerError> {
        let question = question.into();
        check_input(&question)?;
        let lease = self.take_hold(stop, shown).await?;
        let output = Output { shown, commit };
        if !self.is_current()
            && self.read_or_create(output).await? == Origin::Stored
            && let Some(end) = self.end_of_known(&id, &lease, stop, shown).await?
        {
            return Ok(end);
        }
        let id = (id, TurnIdSource::Caller);
        self.turn_held(id, question, &lease, stop, output).await
    }

    /// Resumes the turn with this id, or returns its outcome, if the log has it.
    pub(super) async fn end_of_known(
        &mut self,
        id: &TurnId,
        lease: &BoxLease,
        stop: &Stop,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        match self.standing(id).await? {
            Standing::Unknown => Ok(None),
            Standing::Finished(report) => Ok(Some(TurnEnd::Finished(report))),
            Standing::Waiting(_) | Standing::Unfinished => {
                let end = Box::pin(self.resume_held(lease, stop, shown)).await?;
                end.ok_or(RunnerError::NothingWaits).map(Some)
            }
        }
    }

    /// Returns how a turn of this session stands by the log. Another process may have continued it.
    pub async fn standing(&self, turn: &TurnId) -> Result<Standing, RunnerError> {
        let runner = Runner {
            parts: Arc::clone(&self.parts),
            interrupted: self.interrupted,
        };
        runner.standing(&self.session, turn).await
    }

    /// Closes the last turn as interrupted, if it has no outcome: what was under way with an effect is unknown, what it asks
    /// for is denied.
    pub async fn close(
        &mut self,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        let stop = Stop::new();
        let lease = self.take_hold(&stop, shown).await?;
        self.read().await?;
        if self.left.is_none() {
            return Ok(None);
        }
        self.go_on(Some(Input::Interrupted), &lease, &stop, shown)
            .await
            .map(Some)
    }

    /// Ends a turn that waits for a person or was cut off: what it asks for is denied, and nothing more is begun.
    pub async fn take_back(
        &mut self,
        turn: &TurnId,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<TurnEnd, RunnerError> {
        let stop = Stop::new();
        let lease = self.take_hold(&stop, shown).await?;
        self.read().await?;
        let Some(LeftOver { first_seq, .. }) = self.left else {
            return Err(RunnerError::NothingWaits);
        };
        let first = Page {
            from: first_seq,
            limit: 1,
        };
        let first = self.parts.store.read(&self.session, first).await?;
        if first.first().is_none_or(|first| first.turn != *turn) {
            return Err(RunnerError::NothingWaits);
        }
        self.go_on(Some(Input::Cancelled), &lease, &stop, shown)
            .await
    }

    /// Answers what is asked about a call, and goes on with its turn from the log, in the folder where it was asked for.
    pub async fn answer(
        &mut self,
        request: &ApprovalId,
        answer: Answer,
        by: AnsweredBy,
        stop: &Stop,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<TurnEnd, RunnerError> {
        let lease = self.take_hold(stop, shown).await?;
        self.read().await?;
        let mut asked = self.waiting().iter().map(|waiting| &waiting.request);
        let Some(asked) = asked.find(|asked| asked.id == *request) else {
            return Err(RunnerError::NotWaiting {
                request: request.clone(),
            });
        };
        if !answer.fits(asked.asks) {
            return Err(RunnerError::NoAnswer {
                request: request.clone(),
                answer: answer.word(),
            });
        }
        if asked.folder != *self.parts.rules.folder() && !asked.folder.is_empty() {
            return Err(RunnerError::Elsewhere {
                request: request.clone(),
                folder: Text::clone(&asked.folder),
            });
        }
        let input = Input::Answered {
            request: request.clone(),
            answer,
            by,
        };
        self.go_on(Some(input), &lease, stop, shown).await
    }

    /// Ends the waiting turn if one of its pending approvals was requested before this time. Returns whether it did.
    pub async fn expire(&mut self, asked_before: Timestamp) -> Result<bool, RunnerError> {
        let (stop, (shown, _)) = (Stop::new(), mpsc::channel(1));
        let lease = self.take_hold(&stop, &shown).await?;
        self.read().await?;
        let is_late = |waiting: &Waiting| waiting.asked < asked_before;
        if !self.waiting().iter().any(is_late) {
            return Ok(false);
        }
        self.go_on(Some(Input::Expired), &lease, &stop, &shown)
            .await?;
        Ok(true)
    }

    /// Stops the turn that waits: what it asks for is denied.
    pub async fn stop_waiting(
        &mut self,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<TurnEnd, RunnerError> {
        let stop = Stop::new();
        let meant = self.left.as_ref().map(|left| left.first_seq);
        let lease = self.take_hold(&stop, shown).await?;
        self.read().await?;
        // It may have gone on elsewhere meanwhile, and what waits now is another one.
        if self.left.as_ref().map(|left| left.first_seq) != meant {
            return Err(RunnerError::NothingWaits);
        }
        self.go_on(Some(Input::Cancelled), &lease, &stop, shown)
            .await
    }

    /// Acquires the session's lease. The busy policy says whether to wait for its owner.
    pub(super) async fn take_hold(
        &self,
        stop: &Stop,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<BoxLease, RunnerError> {
        let busy_policy = self.busy_policy;
        let acquiring = self.parts.store.acquire(&self.session, busy_policy);
        tokio::pin!(acquiring);
        if busy_policy != BusyPolicy::Refuse {
            let soon = tokio::time::timeout(QUIET_IN_LINE, &mut acquiring).await;
            if let Ok(lease) = soon {
                return Ok(lease?);
            }
            let _ = shown.send(Shown::InLine).await;
        }
        tokio::select! {
            lease = &mut acquiring => Ok(lease?),
            () = stop.stopped() => Err(RunnerError::NotBegun),
        }
    }

    /// Brings the last turn to its end before a new one begins; one that waits for a person keeps the new one out. Whoever
    /// watches the new one is not shown it: edges that want to show it [resume](Self::resume) it first. Nor does stopping
    /// the new one stop it: it may be another's, and is left in the log as it is.
    pub(super) async fn finish_what_is_left(
        &mut self,
        lease: &BoxLease,
        stop: &Stop,
        output: Output<'_>,
    ) -> Result<(), RunnerError> {
        let (nobody, _) = mpsc::channel(1);
        if self.left.is_none() {
            return Ok(());
        }
        output.refuse_duplicate().await?;
        let going_on = Stop::new();
        let end = tokio::select! {
            biased;
            () = stop.stopped() => return Err(RunnerError::NotBegun),
            end = self.resume_held(lease, &going_on, &nobody) => end?,
        };
        match end {
            Some(TurnEnd::Waiting(waiting)) => Err(match waiting.into_iter().next() {
                Some(first) => RunnerError::Waiting {
                    request: first.request.id,
                },
                None => RunnerError::NothingWaits,
            }),
            Some(TurnEnd::Finished(_)) => self.read().await,
            None => Ok(()),
        }
    }

    async fn resume_held(
        &mut self,
        lease: &BoxLease,
        stop: &Stop,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<Option<TurnEnd>, RunnerError> {
        match &self.left {
            None => Ok(None),
            Some(left) if left.is_parked => Ok(Some(TurnEnd::Waiting(left.waiting.clone()))),
            Some(_) => self.go_on(None, lease, stop, shown).await.map(Some),
        }
    }

    fn check_that_it_can_go_on(
        &self,
        turn: &Turn,
        begun_in: Option<Text>,
    ) -> Result<(), RunnerError> {
        let session = self.session.clone();
        if let Some(folder) = begun_in.filter(|folder| folder != self.parts.rules.folder()) {
            return Err(RunnerError::BegunElsewhere { session, folder });
        }
        match turn.missing_agent().cloned() {
            Some(agent) => Err(RunnerError::AgentMissing { session, agent }),
            None => Ok(()),
        }
    }

    /// Replays the turn that is left, gives it what came, if anything did, and runs it until it ends or only a person can go on.
    async fn go_on(
        &mut self,
        input: Option<Input>,
        lease: &BoxLease,
        stop: &Stop,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<TurnEnd, RunnerError> {
        let Some(LeftOver { first_seq, .. }) = self.left.take() else {
            return Err(RunnerError::NothingWaits);
        };
        self.place = Place::Stale;
        let (mut turn, folder) = self.replay(first_seq).await?;
        let mut to_stop = None;
        let before = match &input {
            Some(Input::Cancelled | Input::Expired) => {
                to_stop = Some(remote::AtWork::of(&turn));
                Vec::new()
            }
            Some(Input::Interrupted) => remote::hear(&self.parts, &self.user, &turn).await?,
            _ => {
                self.check_that_it_can_go_on(&turn, folder)?;
                match self.interrupted {
                    InterruptedTurns::Ask if !turn.is_parked() => vec![Input::Restored],
                    InterruptedTurns::Resume | InterruptedTurns::Ask => vec![Input::Resumed],
                }
            }
        };
        let now = self.parts.clock.now();
        let inputs = before.into_iter().chain(input);
        let events: Vec<Event> = inputs.flat_map(|input| turn.accept(input, now)).collect();
        let first = append(&self.parts, events, shown).await?;
        let commit = None;
        let output = Output { shown, commit };
        let end = self.drive(&mut turn, first, lease, stop, output).await?;
        if let Some(at_work) = to_stop {
            at_work.cancel(&self.parts).await;
        }
        self.next_seq = turn.next_seq();
        Ok(match end {
            TurnEnd::Waiting(waiting) => self.park(first_seq, waiting),
            finished => finished,
        })
    }
}
