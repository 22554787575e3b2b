//! An open session: where its log ends, and the look back that the next turn is shown. Both are kept up to date from turn
//! to turn, so that a turn costs the same however long the session is.

use super::{RunnerError, RunnerParts, Shown, Stop, TurnReport, append, drive};
use crate::look_back::LookBack;
use crate::runner::Runner;
use crate::turn::{Input, Turn, TurnStart};
use lango_core::{
    Event, Exchange, ExchangeAnswer, NewSession, Page, SessionHead, SessionId, StoreError, Text,
    TurnId, TurnSettings, UserId,
};
use std::sync::Arc;
use tokio::sync::mpsc;

/// An open session. A turn borrows it, so there is one at a time.
pub struct Conversation {
    parts: Arc<RunnerParts>,
    session: SessionId,
    user: UserId,
    next_seq: u64,
    turns: u64,
    look_back: Arc<LookBack>,
    place: Place,
}

/// How far memory and store agree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The session is not stored yet.
    Unsaved,
    /// What is held here is what is stored.
    Current,
    /// A turn broke off; the session has to be read again.
    Stale,
}

impl Conversation {
    pub(super) fn unsaved(parts: Arc<RunnerParts>, user: UserId) -> Self {
        let session = SessionId::new(parts.ids.fresh("s_"));
        Self {
            parts,
            session,
            user,
            next_seq: 1,
            turns: 0,
            look_back: Arc::default(),
            place: Place::Unsaved,
        }
    }

    pub(super) async fn open(
        parts: Arc<RunnerParts>,
        session: SessionId,
    ) -> Result<Self, RunnerError> {
        let mut conversation = Self::unsaved(parts, UserId::from(""));
        conversation.session = session;
        conversation.read().await?;
        Ok(conversation)
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

    /// Runs one turn to its outcome.
    pub async fn turn(
        &mut self,
        question: &str,
        stop: &Stop,
        shown: &mpsc::Sender<Shown>,
    ) -> Result<TurnReport, RunnerError> {
        check_input(question)?;
        match self.place {
            Place::Unsaved => self.create().await?,
            Place::Current => {}
            Place::Stale => self.read().await?,
        }
        self.place = Place::Stale;
        let question: Text = question.into();
        let (mut turn, first) = self.begin(&question);
        let first = match append(&self.parts, first, shown).await {
            // Somebody else had a turn here meanwhile. Nothing of ours is stored yet, so it simply comes after that.
            Err(RunnerError::Store(StoreError::Conflict { .. })) => {
                self.read().await?;
                let (again, first) = self.begin(&question);
                turn = again;
                append(&self.parts, first, shown).await?
            }
            stored => stored?,
        };
        let report = drive(&self.parts, &mut turn, &self.user, first, stop, shown).await?;
        self.next_seq = turn.next_seq();
        let task = report
            .author
            .as_ref()
            .and_then(|author| turn.task_of_answer(author));
        drop(turn);
        self.remember(question, &report, task);
        self.place = Place::Current;
        Ok(report)
    }

    /// A new turn at the end of the log.
    fn begin(&self, question: &Text) -> (Turn, Vec<Event>) {
        let terms = self.parts.model.terms();
        let settings = TurnSettings {
            limits: self.parts.limits,
            model: self.parts.model.name().into(),
            topology: Arc::clone(&self.parts.tree.digest),
            price: terms.price,
            context_tokens: terms.context_tokens,
        };
        let tree = Arc::clone(&self.parts.tree);
        let start = self.start_of(TurnId::new(self.parts.ids.fresh("t_")));
        let now = self.parts.clock.now();
        Turn::begin(tree, start, Arc::clone(question), settings, now)
    }

    async fn create(&mut self) -> Result<(), RunnerError> {
        let new = NewSession {
            id: self.session.clone(),
            user: self.user.clone(),
            created: self.parts.clock.now(),
        };
        match self.parts.store.create(new).await {
            // An earlier try was dropped after the store had taken it: the name is fresh, so the session is ours.
            Ok(()) | Err(StoreError::Exists { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads where the session stands, after closing what a process left unfinished.
    async fn read(&mut self) -> Result<(), RunnerError> {
        let mut head = self.parts.store.open(&self.session).await?;
        if let Some(first_seq) = head.unfinished {
            self.close_unfinished(&head, first_seq).await?;
            head = self.parts.store.open(&self.session).await?;
        }
        self.user = head.user;
        self.next_seq = head.next_seq;
        self.turns = head.turns;
        let root = &self.parts.tree.root.name;
        self.look_back = Arc::new(LookBack::new(root, head.exchanges));
        self.place = Place::Current;
        Ok(())
    }

    async fn close_unfinished(
        &self,
        head: &SessionHead,
        first_seq: u64,
    ) -> Result<(), RunnerError> {
        let limit = usize::try_from(head.next_seq - first_seq).unwrap_or(usize::MAX);
        let events = self
            .parts
            .store
            .read(
                &self.session,
                Page {
                    from: first_seq,
                    limit,
                },
            )
            .await?;
        let Some(first) = events.first() else {
            return Ok(());
        };
        let start = TurnStart {
            session: self.session.clone(),
            turn: first.turn.clone(),
            first_seq,
            look_back: Arc::default(),
        };
        let mut turn = Turn::replay(Arc::clone(&self.parts.tree), start, &events);
        let closing = turn.accept(Input::Interrupted, self.parts.clock.now());
        self.parts.store.append(closing.into()).await?;
        Ok(())
    }

    fn start_of(&self, turn: TurnId) -> TurnStart {
        TurnStart {
            session: self.session.clone(),
            turn,
            first_seq: self.next_seq,
            look_back: Arc::clone(&self.look_back),
        }
    }

    /// Adds the turn to the look back, and lets the oldest block go when it is time.
    fn remember(&mut self, question: Text, report: &TurnReport, task: Option<Text>) {
        let answer = report
            .answer
            .as_ref()
            .zip(report.author.as_ref())
            .map(|(text, author)| ExchangeAnswer {
                author: author.clone(),
                text: Arc::clone(text),
                task,
            });
        let before = SessionHead::look_back_start(self.turns);
        self.turns += 1;
        let gone = SessionHead::look_back_start(self.turns) - before;
        let look_back = Arc::make_mut(&mut self.look_back);
        let exchange = Exchange {
            turn: report.turn.clone(),
            question,
            answer,
        };
        look_back.push(&self.parts.tree.root.name, exchange);
        look_back.forget(usize::try_from(gone).unwrap_or(0));
    }
}

fn check_input(question: &str) -> Result<(), RunnerError> {
    if question.trim().is_empty() {
        return Err(RunnerError::InputEmpty);
    }
    if question.len() > Runner::INPUT_BYTES {
        return Err(RunnerError::InputTooLong {
            bytes: question.len(),
        });
    }
    Ok(())
}
