//! An open session: the end of its log and the history for the next turn. Both are updated after each turn instead of
//! being read again.

use super::conversation_state::{CacheState, SessionOrigin, TurnIdSource, UnfinishedTurn};
use super::spans::{log_end, turn_span};
use super::{
    AnswerInbox, CancelToken, InterruptedTurnPolicy, Output, RunnerError, RunnerParts, TurnEnd,
    TurnReport, TurnUpdate, append_first, attachments, check_input, drive,
};
use crate::history::History;
use crate::runner::Runner;
use crate::turn::{Turn, TurnInput, TurnStart};
use lango_core::{
    AgentModel, AgentName, BoxLease, BusyPolicy, Event, EventBatch, EventBody, EventRange,
    Exchange, ExchangeAnswer, MemoryContext, Model, NewSession, PendingApproval, PreviewLength,
    RuleSubject, SessionHead, SessionId, StoreError, Text, Trust, TurnId, TurnSettings, UserId,
    UserInput,
};
use std::sync::Arc;
use tokio::sync::mpsc;
use tracing::Instrument;

/// An open session. A turn borrows it, so only one runs at a time.
pub struct Conversation {
    pub(super) parts: Arc<RunnerParts>,
    pub(super) session: SessionId,
    pub(super) user: UserId,
    pub(super) next_seq: u64,
    turns: u64,
    history: Arc<History>,
    pub(super) busy_policy: BusyPolicy,
    pub(super) interrupted: InterruptedTurnPolicy,
    /// Whether to ask the user before a new turn. If this database was restored from a backup, the turn may already
    /// have run in the original database.
    new_turns: InterruptedTurnPolicy,
    pub(super) cache: CacheState,
    pub(super) unfinished: Option<UnfinishedTurn>,
    pub(super) answers: Arc<AnswerInbox>,
}

impl Conversation {
    pub(super) fn unsaved(runner: &Runner, user: UserId) -> Self {
        let parts = Arc::clone(&runner.parts);
        let session = SessionId::new(parts.ids.fresh("s_"));
        Self {
            busy_policy: parts.busy_policy,
            parts,
            session,
            user,
            next_seq: 1,
            turns: 0,
            history: Arc::default(),
            interrupted: runner.interrupted,
            new_turns: InterruptedTurnPolicy::Resume,
            cache: CacheState::Unsaved,
            unfinished: None,
            answers: Arc::default(),
        }
    }

    pub(super) async fn open(runner: &Runner, session: SessionId) -> Result<Self, RunnerError> {
        let mut conversation = Self::unsaved(runner, UserId::from("")).named(session);
        conversation.read().await?;
        Ok(conversation)
    }

    pub(super) fn named(self, session: SessionId) -> Self {
        Self { session, ..self }
    }

    /// Makes turns fail instead of waiting if the session is busy.
    pub fn without_waiting(self) -> Self {
        self.with_busy_policy(BusyPolicy::Refuse)
    }

    /// Sets what to do if the session is busy.
    pub fn with_busy_policy(self, busy_policy: BusyPolicy) -> Self {
        Self {
            busy_policy,
            ..self
        }
    }

    /// Asks the user before a turn starts or is resumed, because it may have run in another copy of the database.
    pub fn asking_before_turns(self) -> Self {
        Self {
            interrupted: InterruptedTurnPolicy::Ask,
            new_turns: InterruptedTurnPolicy::Ask,
            ..self
        }
    }

    /// Uses another runner from the next turn on, for example because the agents changed.
    pub fn set_runner(&mut self, runner: &Runner) {
        self.parts = Arc::clone(&runner.parts);
    }

    /// Whether the conversation has the state after its last turn in memory, so the next turn need not read the log.
    pub fn is_current(&self) -> bool {
        self.cache == CacheState::Current && self.unfinished.is_none()
    }

    /// Returns the size of the history in bytes.
    pub fn history_bytes(&self) -> usize {
        self.history.bytes()
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Returns the number of turns.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns the pending approvals of the last turn. No new turn can start while there are any.
    pub fn waiting(&self) -> &[PendingApproval] {
        self.unfinished.as_ref().map_or(&[], |last| &last.waiting)
    }

    /// Whether the last turn was interrupted. [`Self::resume`] or the next turn continues it.
    pub fn is_interrupted(&self) -> bool {
        self.unfinished.as_ref().is_some_and(|last| !last.is_parked)
    }

    /// Returns what a pending call would change, as described by its tool.
    pub async fn preview(
        &self,
        waiting: &PendingApproval,
        length: PreviewLength,
    ) -> Option<String> {
        self.parts.gate.preview(&waiting.request, length).await
    }

    /// Returns what the patterns of rules and grants match for a pending call.
    pub fn subject_of(&self, waiting: &PendingApproval) -> RuleSubject {
        let request = &waiting.request;
        let agent = self.parts.tree.agent(request.agent.as_str());
        let tool = agent.and_then(|agent| agent.tool(request.tool.as_str()));
        tool.map_or(RuleSubject::default(), |tool| tool.spec.subject)
    }

    /// Runs one turn until it ends or waits for an approval.
    pub async fn turn(
        &mut self,
        question: impl Into<UserInput>,
        cancel: &CancelToken,
        updates: &mpsc::Sender<TurnUpdate>,
    ) -> Result<TurnEnd, RunnerError> {
        let id = TurnId::new(self.parts.ids.fresh("t_"));
        self.turn_as(id, question, cancel, updates).await
    }

    /// Runs one turn with an id that the caller chose. With the id, the caller can later query its
    /// [status](Runner::turn_status).
    pub async fn turn_as(
        &mut self,
        id: TurnId,
        question: impl Into<UserInput>,
        cancel: &CancelToken,
        updates: &mpsc::Sender<TurnUpdate>,
    ) -> Result<TurnEnd, RunnerError> {
        let question = question.into();
        check_input(&question)?;
        let lease = self.acquire_lease(cancel, updates).await?;
        match self.cache {
            CacheState::Unsaved => {
                self.create().await?;
            }
            CacheState::Current if self.unfinished.is_none() => {}
            CacheState::Current | CacheState::Stale => self.read().await?,
        }
        let id = (id, TurnIdSource::Fresh);
        let output = Output {
            updates,
            commit: None,
        };
        self.turn_with_lease(id, question, &lease, cancel, output)
            .await
    }

    /// Runs one turn in a session that was leased and read.
    pub(super) async fn turn_with_lease(
        &mut self,
        (id, source): (TurnId, TurnIdSource),
        mut question: UserInput,
        lease: &BoxLease,
        cancel: &CancelToken,
        output: Output<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        self.finish_last_turn(lease, cancel, output).await?;
        attachments::store_question(&self.parts, &self.user, &mut question).await?;
        let memory = match &self.parts.memory {
            Some(provider) => provider.recall(&self.user, &self.session).await,
            None => None,
        };
        let span = turn_span(&self.session, &id);
        self.run_new_turn((id, source), question, memory, lease, cancel, output)
            .instrument(span)
            .await
    }

    /// Starts a turn after the last one, and drives it until it ends or waits for an approval.
    async fn run_new_turn(
        &mut self,
        (id, source): (TurnId, TurnIdSource),
        mut question: UserInput,
        memory: Option<MemoryContext>,
        lease: &BoxLease,
        cancel: &CancelToken,
        output: Output<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        self.cache = CacheState::Stale;
        let (mut turn, first) = self.begin(&id, &question, &memory);
        let first = match append_first(&self.parts, first, output).await {
            // Another process ran a turn in this session, possibly this one, or deleted the session. Nothing was
            // stored.
            Err(RunnerError::Store(error)) if source.allows_retry(&error) => {
                if matches!(error, StoreError::NotFound { .. }) {
                    self.reset();
                }
                self.read_or_create(output).await?;
                if source == TurnIdSource::Caller
                    && let Some(end) = self
                        .resume_if_known(&id, lease, cancel, output.updates)
                        .await?
                {
                    return Ok(end);
                }
                self.finish_last_turn(lease, cancel, output).await?;
                self.cache = CacheState::Stale;
                let (again, first) = self.begin(&id, &question, &memory);
                turn = again;
                append_first(&self.parts, first, output).await?
            }
            stored => stored?,
        };
        let first_seq = self.next_seq;
        // The turn may have renamed the attachments.
        question.attachments = first
            .first()
            .map_or_else(Vec::new, |first| first.body.attachments().to_vec());
        let end = self.drive(&mut turn, first, lease, cancel, output).await?;
        self.next_seq = turn.next_seq();
        let report = match end {
            TurnEnd::Finished(report) => report,
            TurnEnd::Waiting(waiting) => {
                self.turns += 1;
                return Ok(self.park(first_seq, waiting));
            }
        };
        let task = report
            .author
            .as_ref()
            .and_then(|author| turn.task_of_answer(author));
        drop(turn);
        self.remember(question, &report, task);
        self.cache = CacheState::Current;
        Ok(TurnEnd::Finished(report))
    }

    /// Reads the session again, because another process may have continued it.
    pub async fn refresh(&mut self) -> Result<(), RunnerError> {
        match self.cache {
            CacheState::Unsaved => Ok(()),
            CacheState::Current | CacheState::Stale => self.read().await,
        }
    }

    pub(super) fn park(&mut self, first_seq: u64, waiting: Vec<PendingApproval>) -> TurnEnd {
        self.unfinished = Some(UnfinishedTurn {
            first_seq,
            waiting: waiting.clone(),
            is_parked: true,
        });
        self.cache = CacheState::Current;
        TurnEnd::Waiting(waiting)
    }

    /// Performs the steps of a turn while the lease of the session is valid.
    pub(super) async fn drive(
        &self,
        turn: &mut Turn,
        first: EventBatch,
        lease: &BoxLease,
        cancel: &CancelToken,
        output: Output<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        let (parts, user, answers) = (&self.parts, &self.user, &self.answers);
        let driving = drive::drive(parts, turn, user, first, lease, (cancel, answers), output);
        tokio::select! {
            end = driving => {
                let end = end?;
                log_end(&end);
                Ok(end)
            }
            () = lease.lost() => Err(StoreError::LeaseLost { id: self.session.clone() }.into()),
        }
    }

    /// Starts a new turn at the end of the log.
    fn begin(
        &self,
        id: &TurnId,
        question: &UserInput,
        memory: &Option<MemoryContext>,
    ) -> (Turn, Vec<Event>) {
        let recalled = memory.as_ref();
        let memory_trust = recalled.map_or(Trust::Trusted, |memory| memory.trust);
        let info = self.parts.model.info();
        let now = self.parts.clock.now();
        let environment = self.parts.environment.as_ref();
        let settings = TurnSettings {
            limits: self.parts.limits,
            model: self.parts.model.name().into(),
            topology: Arc::clone(&self.parts.tree.digest),
            folder: Some(Text::clone(self.parts.rules.folder())),
            price: info.price,
            context_tokens: info.context_tokens,
            memory: recalled.map(|memory| Text::clone(&memory.text)),
            history_trust: self.history.trust().and(memory_trust),
            models: self.parts.models.iter().map(agent_model).collect(),
            model_settings: self.parts.model_settings,
            agent_model_settings: self.parts.agent_model_settings(),
            answer_schema: question.answer_schema.clone(),
            environment: environment.map(|environment| environment.at(now)),
        };
        let tree = Arc::clone(&self.parts.tree);
        let start = self.start_of(id.clone());
        let (mut turn, mut events) = Turn::begin(tree, start, question.clone(), settings, now);
        if self.new_turns == InterruptedTurnPolicy::Ask {
            events.extend(turn.accept(TurnInput::Restored, now));
        }
        (turn, events)
    }

    /// Discards everything that was read from the session's log.
    pub(super) fn reset(&mut self) {
        self.next_seq = 1;
        self.turns = 0;
        self.history = Arc::default();
        self.cache = CacheState::Unsaved;
        self.unfinished = None;
    }

    /// Creates the session. It may already exist, if an earlier attempt was dropped after the store had created it.
    async fn create(&mut self) -> Result<SessionOrigin, RunnerError> {
        let new = NewSession {
            id: self.session.clone(),
            user: self.user.clone(),
            created: self.parts.clock.now(),
        };
        match self.parts.store.create(new).await {
            Ok(()) => Ok(SessionOrigin::New),
            Err(StoreError::Exists { .. }) => Ok(SessionOrigin::Stored),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the session, or creates it if it was never stored.
    pub(super) async fn read_or_create(
        &mut self,
        output: Output<'_>,
    ) -> Result<SessionOrigin, RunnerError> {
        match self.read().await {
            Err(RunnerError::Store(StoreError::NotFound { .. }))
                if self.cache == CacheState::Unsaved => {}
            read => return read.map(|()| SessionOrigin::Stored),
        }
        output.refuse_duplicate().await?;
        let origin = self.create().await?;
        if origin == SessionOrigin::Stored {
            self.read().await?;
        }
        self.cache = CacheState::Current;
        Ok(origin)
    }

    /// Reads the session: its owner, the end of its log, its history and its unfinished turn.
    pub(super) async fn read(&mut self) -> Result<(), RunnerError> {
        let head = self.parts.store.read_head(&self.session).await?;
        self.user = head.user;
        self.next_seq = head.next_seq;
        self.turns = head.turns;
        let root = &self.parts.tree.root.name;
        self.history = Arc::new(History::new(root, head.exchanges));
        self.unfinished = match head.unfinished {
            Some(first_seq) => {
                let (turn, _) = self.replay(first_seq).await?;
                Some(UnfinishedTurn {
                    first_seq,
                    waiting: turn.waiting(),
                    is_parked: turn.is_parked(),
                })
            }
            None => None,
        };
        self.cache = CacheState::Current;
        Ok(())
    }

    /// Replays the last turn from `first_seq` on. Also returns the folder in which it started, if the log has it.
    pub(super) async fn replay(&self, first_seq: u64) -> Result<(Turn, Option<Text>), RunnerError> {
        let range = EventRange {
            from: first_seq,
            limit: usize::try_from(self.next_seq - first_seq).unwrap_or(usize::MAX),
        };
        let events = self.parts.store.read(&self.session, range).await?;
        let id = events.first().map(|event| event.turn.clone());
        let mut start = self.start_of(id.unwrap_or_else(|| TurnId::from("")));
        start.first_seq = first_seq;
        let folder = events.first().and_then(folder_of);
        let turn = Turn::replay(Arc::clone(&self.parts.tree), start, &events);
        Ok((turn, folder))
    }

    fn start_of(&self, turn: TurnId) -> TurnStart {
        TurnStart {
            session: self.session.clone(),
            turn,
            first_seq: self.next_seq,
            history: Arc::clone(&self.history),
            rules: Arc::clone(&self.parts.rules),
        }
    }

    /// Appends the turn to the history, and drops the oldest block of turns when a new block starts.
    fn remember(&mut self, question: UserInput, report: &TurnReport, task: Option<Text>) {
        let answer = report
            .answer
            .as_ref()
            .zip(report.author.as_ref())
            .map(|(text, author)| {
                let sub_agent = self.parts.tree.sub_agent(author.as_str());
                let is_remote = sub_agent.is_some_and(|agent| agent.is_remote);
                ExchangeAnswer {
                    author: author.clone(),
                    text: Arc::clone(text),
                    task,
                    is_remote,
                    is_notice: !is_remote && report.model.is_none(),
                    trust: report.trust,
                }
            });
        let before = SessionHead::history_start(self.turns);
        self.turns += 1;
        let dropped = SessionHead::history_start(self.turns) - before;
        let history = Arc::make_mut(&mut self.history);
        let exchange = Exchange {
            turn: report.turn.clone(),
            question: question.text,
            origin: Some(question.origin),
            attachments: question.attachments,
            answer,
        };
        history.push(&self.parts.tree.root.name, exchange);
        history.forget(usize::try_from(dropped).unwrap_or(0));
    }
}

fn agent_model((agent, model): (&AgentName, &Arc<dyn Model>)) -> (AgentName, AgentModel) {
    let info = model.info();
    let stored = AgentModel {
        model: model.name().into(),
        price: info.price,
        context_tokens: info.context_tokens,
    };
    (agent.clone(), stored)
}

fn folder_of(first: &Event) -> Option<Text> {
    match &first.body {
        EventBody::UserMessage { settings, .. } => settings.as_ref()?.folder.clone(),
        _ => None,
    }
}
