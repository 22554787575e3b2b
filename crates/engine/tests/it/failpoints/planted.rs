//! Bugs between the runner and its store, to see that the checker finds them.

use super::world::{Databases, Plan, World};
use lango_core::{
    AgentName, Answer, Batch, BoxFuture, BoxLease, BusyPolicy, Effect, Event, EventBody, Grant,
    NewSession, Page, RemoteThread, SessionHead, SessionId, SessionStore, StoreError, TurnId,
};
use std::sync::{Arc, Mutex};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    Nothing,
    /// A batch is acknowledged when it is queued, and written with the next one.
    EarlyAcknowledgement,
    /// A call of unknown fate passes for one that can be repeated.
    SilentRetry,
}

impl Planted {
    /// What passes for the effect of a call.
    pub fn claimed(self, effect: Effect) -> Effect {
        match self {
            Self::SilentRetry => Effect::Idempotent,
            Self::Nothing | Self::EarlyAcknowledgement => effect,
        }
    }

    pub fn in_front_of(self, store: Arc<dyn SessionStore>) -> Arc<dyn SessionStore> {
        match self {
            Self::Nothing => store,
            bug => Arc::new(Buggy {
                bug,
                store,
                queued: Mutex::default(),
            }),
        }
    }
}

struct Buggy {
    bug: Planted,
    store: Arc<dyn SessionStore>,
    queued: Mutex<Option<Batch>>,
}

impl Buggy {
    async fn flush(&self, next: Option<Batch>) -> Result<(), StoreError> {
        let queued = std::mem::replace(&mut *self.queued.lock().unwrap(), next);
        match queued {
            Some(batch) => self.store.append(batch).await,
            None => Ok(()),
        }
    }
}

impl SessionStore for Buggy {
    fn append(&self, events: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let is_end = |event: &Event| matches!(event.body, EventBody::TurnFinished { .. });
            match self.bug {
                Planted::EarlyAcknowledgement if !events.iter().any(is_end) => {
                    self.flush(Some(events)).await
                }
                _ => {
                    self.flush(None).await?;
                    self.store.append(events).await
                }
            }
        })
    }

    fn read(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let reading = self.store.read(session, page);
        Box::pin(async move {
            let mut events = reading.await?;
            for event in &mut events {
                if let EventBody::ToolCalled { effect, .. } = &mut event.body {
                    *effect = self.bug.claimed(*effect);
                }
            }
            Ok(events)
        })
    }

    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.create(session)
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        self.store.open(session)
    }

    fn acquire(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> BoxFuture<'_, Result<BoxLease, StoreError>> {
        self.store.acquire(session, busy_policy)
    }

    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        self.store.turn_events(session, turn)
    }

    fn history_of(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<lango_core::Exchange>, StoreError>> {
        self.store.history_of(session, turn)
    }

    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        self.store.grants(session, folder)
    }

    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>> {
        self.store.remote_thread(session, agent)
    }
}

/// All that the checker says of a bug, wherever the process ends.
async fn said_of(planted: Planted) -> Vec<String> {
    let databases = Databases::memory();
    let plan = Plan {
        effect: Effect::Effect,
        asks: false,
        answer: Answer::Skip,
    };
    let with_bug = || async {
        let mut world = World::new(&databases, plan.clone()).await;
        world.planted = planted;
        world
    };
    let whole = with_bug().await.live(None).await;
    let mut said = Vec::new();
    for place in 0..whole.passed.len() {
        let world = with_bug().await;
        world.live(Some(place)).await;
        world.live(None).await;
        said.extend(world.judge().await);
    }
    said
}

#[tokio::test]
async fn the_checker_finds_an_acknowledgement_before_the_commit() {
    assert_eq!(said_of(Planted::Nothing).await, [] as [String; 0]);
    let said = said_of(Planted::EarlyAcknowledgement).await;
    let finds = |what: &str| said.iter().any(|one| one.contains(what));
    assert!(
        finds("0 turns were begun"),
        "an acknowledged message is lost: {said:?}"
    );
    assert!(finds("it was run 2 times"), "{said:?}");
}

#[tokio::test]
async fn the_checker_finds_an_unknown_call_that_is_silently_retried() {
    let said = said_of(Planted::SilentRetry).await;
    let finds = |what: &str| said.iter().any(|one| one.contains(what));
    assert!(finds("it was run 2 times"), "{said:?}");
}
