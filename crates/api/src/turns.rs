//! Turns that callers of the API start, continue and cancel. A turn continues in the background when its caller has
//! disconnected. Turns that a stopped server leaves unfinished are resumed by its recovery.

mod registry;

use crate::feeds::Feeds;
use crate::problem::{Problem, Result};
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalId, BusyPolicy, PendingApproval, SessionId, TurnId,
    UserId, UserInput,
};
use lango_engine::{
    CancelToken, Conversation, Runner, RunnerError, TurnEnd, TurnReport, TurnStatus, TurnUpdate,
    UpdateReceiver, UpdateSender, turn_updates,
};
use lango_server::{Notice, ServerContext};
use registry::{Registry, TurnSlot};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long an answer waits for its turn to park, and how often it checks.
const PARKING: Duration = Duration::from_secs(20);
const PARKING_POLL: Duration = Duration::from_millis(100);

/// How many turns may wait for one session.
const MAX_WAITERS: usize = 32;

/// A service that starts, continues and cancels turns.
pub struct Turns {
    context: Arc<dyn ServerContext>,
    feeds: Arc<Feeds>,
    registry: Arc<Registry>,
}

/// A turn to start.
#[derive(Debug, Clone)]
pub struct NewTurn {
    /// The user whose turn it is.
    pub user: UserId,
    /// Its session, which is created if it does not exist.
    pub session: SessionId,
    /// Its id. If a turn with this id exists, no other turn is started: the existing one is resumed, or its outcome is
    /// returned.
    pub turn: TurnId,
    /// The message that starts it.
    pub input: UserInput,
}

/// The state of a turn right after the request to start it.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStarted {
    /// Its message is stored, and it runs.
    Running,
    /// It waits for another turn of the session, and nothing of it is stored yet.
    Queued,
    /// It waits for approvals.
    Waiting(Vec<PendingApproval>),
    /// It has ended.
    Finished(TurnReport),
}

/// A running turn. Dropping the handle does not stop the turn.
pub struct TurnHandle {
    /// Its session.
    pub session: SessionId,
    /// Its id.
    pub turn: TurnId,
    /// Its output: stored events and drafts. Closed when the turn ends or parks.
    pub shown: UpdateReceiver,
    /// How it ended.
    pub end: oneshot::Receiver<std::result::Result<TurnEnd, RunnerError>>,
}

/// The reason to run or continue a turn.
enum Cause {
    Message(Box<UserInput>),
    Answer(ApprovalId, ApprovalAnswer),
}

impl Turns {
    /// Creates the service. At most `limit` turns run or wait for their session at a time.
    pub fn new(context: Arc<dyn ServerContext>, feeds: Arc<Feeds>, limit: usize) -> Self {
        Self {
            context,
            feeds,
            registry: Registry::new(limit),
        }
    }

    /// Returns how many turns that callers of the API started here are running, and how many are queued.
    pub fn counts(&self) -> (usize, usize) {
        self.registry.counts()
    }

    /// Starts a turn. Returns as soon as the message is stored, or the turn is queued or has ended.
    pub async fn start(&self, new: NewTurn) -> Result<TurnStarted> {
        let mut handle = self.run(new).await?;
        loop {
            tokio::select! {
                biased;
                shown = handle.shown.recv() => match shown {
                    Some(TurnUpdate::Stored(_)) => return Ok(TurnStarted::Running),
                    Some(TurnUpdate::Queued) => return Ok(TurnStarted::Queued),
                    Some(_) => {}
                    None => return started(handle.end.await),
                },
            }
        }
    }

    /// Starts a turn and returns a handle to follow it.
    pub async fn run(&self, new: NewTurn) -> Result<TurnHandle> {
        let runner = self.context.runner();
        let conversation = runner
            .start_as(new.user.clone(), new.session.clone())
            .with_busy_policy(BusyPolicy::Wait {
                max_waiters: MAX_WAITERS,
            });
        let answers = conversation.answers();
        let slot = self
            .registry
            .enter(&new.user, &new.session, &new.turn, answers)?;
        Ok(self.spawn(
            conversation,
            new.turn,
            slot,
            Cause::Message(Box::new(new.input)),
        ))
    }

    /// Answers the question of a turn. A turn that runs here receives the answer; a parked turn is continued. Returns
    /// when the answer is stored.
    pub async fn answer(&self, waiting: &PendingApproval, answer: ApprovalAnswer) -> Result<()> {
        if self.give(waiting, &answer).await? {
            return Ok(());
        }
        let mut handle = self.resume(waiting, answer).await?;
        loop {
            match handle.shown.recv().await {
                Some(TurnUpdate::Stored(_)) => return Ok(()),
                Some(_) => {}
                None => return started(handle.end.await).map(drop),
            }
        }
    }

    /// Gives an answer to a turn that runs here. Returns whether the turn accepted it.
    async fn give(&self, waiting: &PendingApproval, answer: &ApprovalAnswer) -> Result<bool> {
        let answers = self.registry.answers_of(&waiting.session, &waiting.turn);
        match answers {
            Some(answers) => Ok(answers
                .give(&waiting.request.id, answer, AnswerSource::Person)
                .await?),
            None => Ok(false),
        }
    }

    /// Answers the question of a parked turn, and returns a handle to follow the turn. If the turn has not parked yet,
    /// because another of its agents is still working, waits for that for a while.
    pub async fn resume(
        &self,
        waiting: &PendingApproval,
        answer: ApprovalAnswer,
    ) -> Result<TurnHandle> {
        let deadline = Instant::now() + PARKING;
        loop {
            match self.try_resume(waiting, answer.clone()).await {
                Err(problem) if problem.is_of_busy_turn() && Instant::now() < deadline => {
                    tokio::time::sleep(PARKING_POLL).await;
                }
                resumed => return resumed,
            }
        }
    }

    async fn try_resume(
        &self,
        waiting: &PendingApproval,
        answer: ApprovalAnswer,
    ) -> Result<TurnHandle> {
        let runner = self.context.runner();
        if !runner.is_free(&waiting.session).await? {
            return Err(Problem::busy_turn(&waiting.turn));
        }
        let conversation = runner.open(waiting.session.clone()).await?;
        let user = conversation.user().clone();
        let answers = conversation.answers();
        let slot = self
            .registry
            .enter_again(&user, &waiting.session, &waiting.turn, answers)?;
        let cause = Cause::Answer(waiting.request.id.clone(), answer);
        let conversation = conversation.without_waiting();
        Ok(self.spawn(conversation, waiting.turn.clone(), slot, cause))
    }

    /// Stops a turn of one of these users that runs or is queued here. Returns false if there is none.
    pub fn stop(&self, users: &[UserId], session: &SessionId, turn: &TurnId) -> bool {
        self.registry.stop(users, session, turn)
    }

    /// Stops all turns of a session that is being deleted.
    pub fn stop_all(&self, session: &SessionId) {
        self.registry.stop_all(session);
    }

    /// Returns whether a turn has stored its first events, or `None` if it does not run here.
    pub fn has_started(&self, session: &SessionId, turn: &TurnId) -> Option<bool> {
        self.registry.has_started(session, turn)
    }

    /// Ends a turn that waits for an approval or was interrupted.
    pub async fn cancel_waiting(&self, session: &SessionId, turn: &TurnId) -> Result<()> {
        let runner = self.context.runner();
        match runner.turn_status(session, turn).await? {
            TurnStatus::Unknown => Err(no_turn(turn)),
            TurnStatus::Finished(_) => Err(Problem::conflict(format!("turn `{turn}` has ended"))),
            TurnStatus::Waiting(_) | TurnStatus::Unfinished => {
                let cancelled = self.cancel_parked(&runner, session, turn).await;
                cancelled.map_err(|problem| match problem.status {
                    409 => Problem::conflict(format!("turn `{turn}` runs in another process"))
                        .next("cancel it there, or retry when it waits for an approval"),
                    _ => problem,
                })
            }
        }
    }

    async fn cancel_parked(
        &self,
        runner: &Runner,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<()> {
        let mut conversation = runner.open(session.clone()).await?.without_waiting();
        let (shown, _) = turn_updates();
        conversation.cancel_turn(turn, &shown).await?;
        Ok(())
    }

    fn spawn(
        &self,
        conversation: Conversation,
        turn: TurnId,
        slot: TurnSlot,
        cause: Cause,
    ) -> TurnHandle {
        let (tap, shown) = turn_updates();
        let (send_end, end) = oneshot::channel();
        let session = conversation.session().clone();
        let running = RunningTurn {
            context: Arc::clone(&self.context),
            feeds: Arc::clone(&self.feeds),
            conversation,
            turn: turn.clone(),
            slot,
        };
        tokio::spawn(async move {
            // The caller may be gone.
            let _ = send_end.send(running.run(cause, tap).await);
        });
        TurnHandle {
            session,
            turn,
            shown,
            end,
        }
    }
}

/// A turn in the background.
struct RunningTurn {
    context: Arc<dyn ServerContext>,
    feeds: Arc<Feeds>,
    conversation: Conversation,
    turn: TurnId,
    slot: TurnSlot,
}

impl RunningTurn {
    async fn run(
        mut self,
        cause: Cause,
        tap: UpdateSender,
    ) -> std::result::Result<TurnEnd, RunnerError> {
        let stop = self.slot.stop();
        let (sender, shown) = turn_updates();
        let session = self.conversation.session().clone();
        let passing_on = pass_on(&self.feeds, &self.slot, (&session, &self.turn), shown, tap);
        let acting = act(&mut self.conversation, &self.turn, cause, &stop, sender);
        let (end, ()) = tokio::join!(acting, passing_on);
        let user = self.conversation.user();
        match &end {
            Ok(TurnEnd::Finished(_)) => self.context.turn_ended(user, &session),
            Err(RunnerError::Store(error)) if is_of_server(error) => {
                self.context.notify(Notice::Error(error));
            }
            _ => {}
        }
        self.context.turn_continued(user, &self.turn).await;
        end
    }
}

async fn act(
    conversation: &mut Conversation,
    turn: &TurnId,
    cause: Cause,
    stop: &CancelToken,
    shown: UpdateSender,
) -> std::result::Result<TurnEnd, RunnerError> {
    match cause {
        Cause::Message(input) => {
            let input = *input;
            let turn = turn.clone();
            conversation
                .turn_once(turn, input, stop, &shown, None)
                .await
        }
        Cause::Answer(request, answer) => {
            let by = AnswerSource::Person;
            conversation
                .answer(&request, answer, by, stop, &shown)
                .await
        }
    }
}

/// Forwards the output of a turn to the feeds and to its handle.
async fn pass_on(
    feeds: &Feeds,
    slot: &TurnSlot,
    (session, turn): (&SessionId, &TurnId),
    mut shown: UpdateReceiver,
    tap: UpdateSender,
) {
    while let Some(item) = shown.recv().await {
        feeds.publish(session, turn, &item);
        if matches!(item, TurnUpdate::Stored(_)) {
            slot.note_start();
        }
        tap.send(item);
    }
}

/// Returns whether the server itself caused an error, so that its operator should be notified.
fn is_of_server(error: &lango_core::StoreError) -> bool {
    Problem::from_store(error).status >= 500
}

fn started(
    end: std::result::Result<std::result::Result<TurnEnd, RunnerError>, oneshot::error::RecvError>,
) -> Result<TurnStarted> {
    match end {
        Ok(Ok(TurnEnd::Finished(report))) => Ok(TurnStarted::Finished(report)),
        Ok(Ok(TurnEnd::Waiting(waiting))) => Ok(TurnStarted::Waiting(waiting)),
        Ok(Err(error)) => Err(error.into()),
        // The task panicked.
        Err(_) => Err(Problem::internal()),
    }
}

fn no_turn(turn: &TurnId) -> Problem {
    Problem::not_found(format!("there is no turn `{turn}` in this session"))
}
