//! An open session: the end of its log and the history for the next turn, both updated after each turn instead of read again.

use super::{
    Answers, InterruptedTurns, Output, RunnerError, RunnerParts, Shown, Stop, TurnEnd, TurnReport,
    append_first, attachments, check_input, drive,
};
use crate::history::LookBack;
use crate::runner::Runner;
use crate::turn::{Input, Turn, TurnStart};
use lango_core::{
    AgentModel, AgentName, Batch, BoxLease, BusyPolicy, Event, EventBody, Exchange, ExchangeAnswer,
    Extent, MemoryContext, Model, NewSession, Page, SessionHead, SessionId, StoreError, Subject,
    Text, Trust, TurnId, TurnSettings, UserId, UserInput, Waiting,
};
use std::sync::Arc;
use tokio::sync::mpsc;

/// An open session. A turn borrows it, so there is one at a time.
pub struct Conversation {
    pub(super) parts: Arc<RunnerParts>,
    pub(super) session: SessionId,
    pub(super) user: UserId,
    pub(super) next_seq: u64,
    turns: u64,
    history: Arc<LookBack>,
    pub(super) busy_policy: BusyPolicy,
    pub(super) interrupted: InterruptedTurns,
    /// Whether to ask the user before a turn that may already have run in the database that this one was restored from.
    new_turns: InterruptedTurns,
    pub(super) place: Place,
    pub(super) left: Option<LeftOver>,
    pub(super) answers: Arc<Answers>,
}

/// A turn without an outcome. Nothing of it is kept but where it is in the log.
pub(super) struct LeftOver {
    pub first_seq: u64,
    /// The calls that wait for a person.
    pub waiting: Vec<Waiting>,
    /// Whether nothing else can go on.
    pub is_parked: bool,
}

/// How far memory and store agree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The session is not stored yet.
    Unsaved,
    /// What is held here is what is stored.
    Current,
    /// A turn broke off; the session has to be read again.
    Stale,
}

/// Where a session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was made just now, and has no turns.
    New,
    /// It was there.
    Stored,
}

/// Where the id of a new turn comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnIdSource {
    /// It was created for this turn.
    Fresh,
    /// The caller chose it, and another process may have run the turn.
    Caller,
}

impl TurnIdSource {
    /// Returns whether a turn whose first append failed with this error can be retried from the current log. A session that was
    /// deleted is created again for a caller of the server, but not for a user who has it open.
    fn allows_retry(self, error: &StoreError) -> bool {
        match error {
            StoreError::Conflict { .. } => true,
            StoreError::NotFound { .. } => self == Self::Caller,
            _ => false,
        }
    }
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
            new_turns: InterruptedTurns::Resume,
            place: Place::Unsaved,
            left: None,
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

    /// The same, but it never waits in line for its session.
    pub fn impatient(self) -> Self {
        self.with_busy_policy(BusyPolicy::Refuse)
    }

    /// Returns the same conversation with another policy for a busy session.
    pub fn with_busy_policy(self, busy_policy: BusyPolicy) -> Self {
        Self {
            busy_policy,
            ..self
        }
    }

    /// Asks the user before a turn starts or is resumed: in another copy of the database it may have gone on.
    pub fn asking_first(self) -> Self {
        Self {
            interrupted: InterruptedTurns::Ask,
            new_turns: InterruptedTurns::Ask,
            ..self
        }
    }

    /// From the next turn on another runner runs it: there may be other agents now.
    pub fn move_to(&mut self, runner: &Runner) {
        self.parts = Arc::clone(&runner.parts);
    }

    /// Returns whether it holds the session as its last turn left it, so that the next turn need not read the log.
    pub fn is_current(&self) -> bool {
        self.place == Place::Current && self.left.is_none()
    }

    /// Returns the size of its history in bytes.
    pub fn history_bytes(&self) -> usize {
        self.history.bytes()
    }

    /// Its id.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Whose it is.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// How many turns it has.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// The calls of its last turn that wait for a person; a new turn has to wait behind them.
    pub fn waiting(&self) -> &[Waiting] {
        self.left.as_ref().map_or(&[], |left| &left.waiting)
    }

    /// Whether its last turn was cut off: it goes on with [`Self::resume`], or before the next one.
    pub fn is_cut_off(&self) -> bool {
        self.left.as_ref().is_some_and(|left| !left.is_parked)
    }

    /// What a call that waits would change, in the words of its tool.
    pub async fn preview(&self, waiting: &Waiting, extent: Extent) -> Option<String> {
        self.parts.gate.preview(&waiting.request, extent).await
    }

    /// What patterns for calls like one that waits are matched against.
    pub fn subject_of(&self, waiting: &Waiting) -> Subject {
        let request = &waiting.request;
        let agent = self.parts.tree.agent(request.agent.as_str());
        let tool = agent.and_then(|agent| agent.tool(request.tool.as_str()));
        tool.map_or(Subject::default(), |tool| tool.spec.subject)
    }

    /// Runs one turn until it ends, or until only a person can go on.
    pub async fn turn(
        &mut self,
        question: impl Into<UserInput>,
        stop: &Stop,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<TurnEnd, RunnerError> {
        let id = TurnId::new(self.parts.ids.fresh("t_"));
        self.turn_as(id, question, stop, shown).await
    }

    /// The same under an id that the edge chose, by which it finds out later [how it stands](Runner::standing).
    pub async fn turn_as(
        &mut self,
        id: TurnId,
        question: impl Into<UserInput>,
        stop: &Stop,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<TurnEnd, RunnerError> {
        let question = question.into();
        check_input(&question)?;
        let lease = self.take_hold(stop, shown).await?;
        match self.place {
            Place::Unsaved => {
                self.create().await?;
            }
            Place::Current if self.left.is_none() => {}
            Place::Current | Place::Stale => self.read().await?,
        }
        let id = (id, TurnIdSource::Fresh);
        let output = Output {
            shown,
            commit: None,
        };
        self.turn_held(id, question, &lease, stop, output).await
    }

    /// Runs one turn in a session that was leased and read.
    pub(super) async fn turn_held(
        &mut self,
        (id, source): (TurnId, TurnIdSource),
        mut question: UserInput,
        lease: &BoxLease,
        stop: &Stop,
        output: Output<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        self.finish_what_is_left(lease, stop, output).await?;
        attachments::store_question(&self.parts, &self.user, &mut question).await?;
        let memory = match &self.parts.recollection {
            Some(recollection) => recollection.recall(&self.user, &self.session).await,
            None => None,
        };
        self.place = Place::Stale;
        let (mut turn, first) = self.begin(&id, &question, &memory);
        let first = match append_first(&self.parts, first, output).await {
            // Another process ran a turn in this session, possibly this very one, or deleted the session. Nothing was stored.
            Err(RunnerError::Store(error)) if source.allows_retry(&error) => {
                if matches!(error, StoreError::NotFound { .. }) {
                    self.reset();
                }
                self.read_or_create(output).await?;
                if source == TurnIdSource::Caller
                    && let Some(end) = self.end_of_known(&id, lease, stop, output.shown).await?
                {
                    return Ok(end);
                }
                self.finish_what_is_left(lease, stop, output).await?;
                self.place = Place::Stale;
                let (again, first) = self.begin(&id, &question, &memory);
                turn = again;
                append_first(&self.parts, first, output).await?
            }
            stored => stored?,
        };
        let first_seq = self.next_seq;
        // Under the names that the turn gave them.
        question.attachments = first
            .first()
            .map_or_else(Vec::new, |first| first.body.attachments().to_vec());
        let end = self.drive(&mut turn, first, lease, stop, output).await?;
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
        self.place = Place::Current;
        Ok(TurnEnd::Finished(report))
    }

    /// Reads the session again: somebody may have answered elsewhere.
    pub async fn refresh(&mut self) -> Result<(), RunnerError> {
        match self.place {
            Place::Unsaved => Ok(()),
            Place::Current | Place::Stale => self.read().await,
        }
    }

    pub(super) fn park(&mut self, first_seq: u64, waiting: Vec<Waiting>) -> TurnEnd {
        self.left = Some(LeftOver {
            first_seq,
            waiting: waiting.clone(),
            is_parked: true,
        });
        self.place = Place::Current;
        TurnEnd::Waiting(waiting)
    }

    /// Performs steps of a turn as long as the session's lease is valid.
    pub(super) async fn drive(
        &self,
        turn: &mut Turn,
        first: Batch,
        lease: &BoxLease,
        stop: &Stop,
        output: Output<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        let (parts, user, answers) = (&self.parts, &self.user, &self.answers);
        let driving = drive::drive(parts, turn, user, first, lease, (stop, answers), output);
        tokio::select! {
            end = driving => end,
            () = lease.lost() => Err(StoreError::Lost { id: self.session.clone() }.into()),
        }
    }

    /// A new turn at the end of the log.
    fn begin(
        &self,
        id: &TurnId,
        question: &UserInput,
        memory: &Option<MemoryContext>,
    ) -> (Turn, Vec<Event>) {
        let recalled = memory.as_ref();
        let memory_trust = recalled.map_or(Trust::Trusted, |memory| memory.trust);
        let terms = self.parts.model.terms();
        let now = self.parts.clock.now();
        let environment = self.parts.environment.as_ref();
        let settings = TurnSettings {
            limits: self.parts.limits,
            model: self.parts.model.name().into(),
            topology: Arc::clone(&self.parts.tree.digest),
            folder: Some(Text::clone(self.parts.rules.folder())),
            price: terms.price,
            context_tokens: terms.context_tokens,
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
        if self.new_turns == InterruptedTurns::Ask {
            events.extend(turn.accept(Input::Restored, now));
        }
        (turn, events)
    }

    /// Discards everything that was read from the session's log.
    pub(super) fn reset(&mut self) {
        self.next_seq = 1;
        self.turns = 0;
        self.history = Arc::default();
        self.place = Place::Unsaved;
        self.left = None;
    }

    /// Makes the session, or finds that it is there: an earlier try may have been dropped after the store had taken it.
    async fn create(&mut self) -> Result<Origin, RunnerError> {
        let new = NewSession {
            id: self.session.clone(),
            user: self.user.clone(),
            created: self.parts.clock.now(),
        };
        match self.parts.store.create(new).await {
            Ok(()) => Ok(Origin::New),
            Err(StoreError::Exists { .. }) => Ok(Origin::Stored),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads where the session stands; makes it if it was never stored.
    pub(super) async fn read_or_create(
        &mut self,
        output: Output<'_>,
    ) -> Result<Origin, RunnerError> {
        match self.read().await {
            Err(RunnerError::Store(StoreError::NotFound { .. }))
                if self.place == Place::Unsaved => {}
            read => return read.map(|()| Origin::Stored),
        }
        output.refuse_duplicate().await?;
        let origin = self.create().await?;
        if origin == Origin::Stored {
            self.read().await?;
        }
        self.place = Place::Current;
        Ok(origin)
    }

    /// Reads where the session stands.
    pub(super) async fn read(&mut self) -> Result<(), RunnerError> {
        let head = self.parts.store.open(&self.session).await?;
        self.user = head.user;
        self.next_seq = head.next_seq;
        self.turns = head.turns;
        let root = &self.parts.tree.root.name;
        self.history = Arc::new(LookBack::new(root, head.exchanges));
        self.left = match head.unfinished {
            Some(first_seq) => {
                let (turn, _) = self.replay(first_seq).await?;
                Some(LeftOver {
                    first_seq,
                    waiting: turn.waiting(),
                    is_parked: turn.is_parked(),
                })
            }
            None => None,
        };
        self.place = Place::Current;
        Ok(())
    }

    /// The last turn, as its events from `first_seq` on tell of it, and the folder it was begun in, if that was stored.
    pub(super) async fn replay(&self, first_seq: u64) -> Result<(Turn, Option<Text>), RunnerError> {
        let page = Page {
            from: first_seq,
            limit: usize::try_from(self.next_seq - first_seq).unwrap_or(usize::MAX),
        };
        let events = self.parts.store.read(&self.session, page).await?;
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

    /// Adds the turn to the look back, and lets the oldest block go when it is time.
    fn remember(&mut self, question: UserInput, report: &TurnReport, task: Option<Text>) {
        let answer = report
            .answer
            .as_ref()
            .zip(report.author.as_ref())
            .map(|(text, author)| {
                let sub_agent = self.parts.tree.sub_agent(author.as_str());
                let is_remote = sub_agent.is_some_and(|agent| agent.remote);
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
        let gone = SessionHead::history_start(self.turns) - before;
        let history = Arc::make_mut(&mut self.history);
        let exchange = Exchange {
            turn: report.turn.clone(),
            question: question.text,
            origin: Some(question.origin),
            attachments: question.attachments,
            answer,
        };
        history.push(&self.parts.tree.root.name, exchange);
        history.forget(usize::try_from(gone).unwrap_or(0));
    }
}

fn agent_model((agent, model): (&AgentName, &Arc<dyn Model>)) -> (AgentName, AgentModel) {
    let terms = model.terms();
    let stored = AgentModel {
        model: model.name().into(),
        price: terms.price,
        context_tokens: terms.context_tokens,
    };
    (agent.clone(), stored)
}

fn folder_of(first: &Event) -> Option<Text> {
    match &first.body {
        EventBody::UserMessage { settings, .. } => settings.as_ref()?.folder.clone(),
        _ => None,
    }
}
