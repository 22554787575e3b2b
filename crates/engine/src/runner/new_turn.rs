//! A new turn, from the user's message to the end: [`Conversation::turn`] acquires the lease and reads the session,
//! `run` finishes an interrupted turn and starts the new one, and `drive` (`drive.rs`) performs the steps.

use super::conversation::Conversation;
use super::conversation_state::{CacheState, SessionOrigin, TurnIdSource};
use super::input::check_input;
use super::spans::turn_span;
use super::turn_context::TurnContext;
use super::{
    CancelToken, InterruptedTurnPolicy, RunnerError, TurnCommit, TurnEnd, TurnReport, UpdateSender,
    append_first, attachments,
};
use crate::turn::{Turn, TurnInput};
use lango_core::{
    AgentModel, AgentName, Event, EventBatch, Exchange, ExchangeAnswer, MemoryContext, Model,
    SessionHead, StoreError, Text, Trust, TurnId, TurnSettings, UserInput,
};
use std::sync::Arc;
use tracing::Instrument;

/// A turn to start.
struct NewTurn {
    id: TurnId,
    source: TurnIdSource,
    question: UserInput,
}

/// The result of starting a turn.
enum StartedTurn {
    /// Its first events are stored.
    New(Box<Turn>, EventBatch),
    /// Another process had started it. This is how it ended.
    Known(TurnEnd),
}

impl Conversation {
    /// Runs one turn until it ends or waits for an approval. Finishes the last turn first, if it was interrupted.
    pub async fn turn(
        &mut self,
        question: impl Into<UserInput>,
        cancel: &CancelToken,
        updates: &UpdateSender,
    ) -> Result<TurnEnd, RunnerError> {
        let new = NewTurn {
            id: TurnId::new(self.parts.ids.fresh("t_")),
            source: TurnIdSource::Fresh,
            question: question.into(),
        };
        check_input(&new.question)?;
        let lease = self.acquire_lease(cancel, updates).await?;
        match self.cache {
            CacheState::Unsaved => {
                self.create().await?;
            }
            CacheState::Current if self.unfinished.is_none() => {}
            CacheState::Current | CacheState::Stale => self.read().await?,
        }
        self.run(new, TurnContext::new(&lease, cancel, updates))
            .await
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
        updates: &UpdateSender,
        commit: Option<&dyn TurnCommit>,
    ) -> Result<TurnEnd, RunnerError> {
        let new = NewTurn {
            id,
            source: TurnIdSource::Caller,
            question: question.into(),
        };
        check_input(&new.question)?;
        let lease = self.acquire_lease(cancel, updates).await?;
        let context = TurnContext {
            commit,
            ..TurnContext::new(&lease, cancel, updates)
        };
        if !self.is_current()
            && self.read_or_create(context).await? == SessionOrigin::Stored
            && let Some(end) = self.resume_if_known(&new.id, context).await?
        {
            return Ok(end);
        }
        self.run(new, context).await
    }

    /// Runs a turn in a session that was leased and read: finishes the last turn, starts this one, drives it until it
    /// ends or waits for an approval, and adds it to the history.
    async fn run(
        &mut self,
        mut new: NewTurn,
        context: TurnContext<'_>,
    ) -> Result<TurnEnd, RunnerError> {
        self.finish_last_turn(context).await?;
        attachments::store_question(&self.parts, &self.user, &mut new.question).await?;
        let memory = match &self.parts.memory {
            Some(provider) => provider.recall(&self.user, &self.session).await,
            None => None,
        };
        let span = turn_span(&self.session, &new.id);
        let running = async {
            let (mut turn, first) = match self.start_turn(&new, memory.as_ref(), context).await? {
                StartedTurn::New(turn, first) => (turn, first),
                StartedTurn::Known(end) => return Ok(end),
            };
            // The turn may have renamed the attachments.
            new.question.attachments = first
                .first()
                .map_or_else(Vec::new, |first| first.body.attachments().to_vec());
            let first_seq = self.next_seq;
            let driving = self.drive(&mut turn, first, context);
            let end = context.while_leased(&self.session, driving).await?;
            self.next_seq = turn.next_seq();
            let report = match end {
                TurnEnd::Finished(report) => report,
                TurnEnd::Waiting(waiting) => {
                    self.turns += 1;
                    return Ok(self.park(first_seq, waiting));
                }
            };
            let author = report.author.as_ref();
            let task = author.and_then(|author| turn.task_of_answer(author));
            // The turn shares the history, which is extended next.
            drop(turn);
            self.remember(new.question, &report, task);
            self.cache = CacheState::Current;
            Ok(TurnEnd::Finished(report))
        };
        running.instrument(span).await
    }

    /// Starts a turn after the last one and stores its first events. If another process ran a turn in the meantime,
    /// possibly this one, or deleted the session, nothing was stored; then reads the session and starts again.
    async fn start_turn(
        &mut self,
        new: &NewTurn,
        memory: Option<&MemoryContext>,
        context: TurnContext<'_>,
    ) -> Result<StartedTurn, RunnerError> {
        self.cache = CacheState::Stale;
        let (turn, events) = self.begin_turn(new, memory);
        match append_first(&self.parts, events, context).await {
            Err(RunnerError::Store(error)) if new.source.allows_retry(&error) => {
                if matches!(error, StoreError::NotFound { .. }) {
                    self.reset();
                }
            }
            stored => return Ok(StartedTurn::New(turn, stored?)),
        }
        self.read_or_create(context).await?;
        if new.source == TurnIdSource::Caller
            && let Some(end) = self.resume_if_known(&new.id, context).await?
        {
            return Ok(StartedTurn::Known(end));
        }
        self.finish_last_turn(context).await?;
        self.cache = CacheState::Stale;
        let (turn, events) = self.begin_turn(new, memory);
        let first = append_first(&self.parts, events, context).await?;
        Ok(StartedTurn::New(turn, first))
    }

    /// Creates a turn at the end of the log, with its first events.
    fn begin_turn(&self, new: &NewTurn, memory: Option<&MemoryContext>) -> (Box<Turn>, Vec<Event>) {
        let memory_trust = memory.map_or(Trust::Trusted, |memory| memory.trust);
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
            memory: memory.map(|memory| Text::clone(&memory.text)),
            history_trust: self.history.trust().and(memory_trust),
            models: self.parts.models.iter().map(agent_model).collect(),
            model_settings: self.parts.model_settings,
            agent_model_settings: self.parts.agent_model_settings(),
            answer_schema: new.question.answer_schema.clone(),
            environment: environment.map(|environment| environment.at(now)),
            mode: self.parts.mode.get(),
        };
        let tree = Arc::clone(&self.parts.tree);
        let start = self.start_of(new.id.clone());
        let (mut turn, mut events) = Turn::begin(tree, start, new.question.clone(), settings, now);
        if self.new_turns == InterruptedTurnPolicy::Ask {
            events.extend(turn.accept(TurnInput::Restored, now));
        }
        (Box::new(turn), events)
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
            undone: None,
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
