//! Bugs planted between the runner and its store, to verify that the checker finds them.

use super::world::{Databases, Plan, World};
use lango_core::{
    AgentName, ApprovalAnswer, BoxFuture, BoxLease, BusyPolicy, Effect, Event, EventBatch,
    EventBody, EventRange, Grant, NewSession, RemoteThread, SessionHead, SessionId, SessionStore,
    StoreError, TurnId,
};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlantedBug {
    Nothing,
    /// A batch is acknowledged when it is queued, and written with the next one.
    EarlyAcknowledgement,
    /// A call with an unknown outcome is treated as repeatable.
    SilentRetry,
}

impl PlantedBug {
    /// Returns the effect that the tool claims to have.
    pub(super) fn claimed(self, effect: Effect) -> Effect {
        match self {
            Self::SilentRetry => Effect::Idempotent,
            Self::Nothing | Self::EarlyAcknowledgement => effect,
        }
    }

    pub(super) fn in_front_of(self, store: Arc<dyn SessionStore>) -> Arc<dyn SessionStore> {
        match self {
            Self::Nothing => store,
            bug => Arc::new(BuggyStore {
                bug,
                store,
                queued: Mutex::default(),
            }),
        }
    }
}

struct BuggyStore {
    bug: PlantedBug,
    store: Arc<dyn SessionStore>,
    queued: Mutex<Option<EventBatch>>,
}

impl BuggyStore {
    async fn flush(&self, next: Option<EventBatch>) -> Result<(), StoreError> {
        let queued = std::mem::replace(&mut *self.queued.lock().unwrap(), next);
        match queued {
            Some(batch) => self.store.append(batch).await,
            None => Ok(()),
        }
    }
}

impl SessionStore for BuggyStore {
    fn append(&self, events: EventBatch) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let is_end = |event: &Event| matches!(event.body, EventBody::TurnFinished { .. });
            match self.bug {
                PlantedBug::EarlyAcknowledgement if !events.iter().any(is_end) => {
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
        page: EventRange,
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

    fn read_head(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        self.store.read_head(session)
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

    fn undone_seq(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        self.store.undone_seq(session, turn)
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

/// Returns all findings of the checker about a bug, for every fail point.
async fn findings_about(planted: PlantedBug) -> Vec<String> {
    let databases = Databases::memory();
    let plan = Plan {
        effect: Effect::NonIdempotent,
        needs_approval: false,
        answer: ApprovalAnswer::Skip,
    };
    let with_bug = || async {
        let mut world = World::new(&databases, plan.clone()).await;
        world.planted = planted;
        world
    };
    let whole = with_bug().await.run_process(None).await;
    let mut findings = Vec::new();
    for place in 0..whole.passed.len() {
        let world = with_bug().await;
        world.run_process(Some(place)).await;
        world.run_process(None).await;
        findings.extend(world.violations().await);
    }
    findings
}

#[tokio::test]
async fn the_checker_finds_an_acknowledgement_before_the_commit() {
    assert_eq!(findings_about(PlantedBug::Nothing).await, [] as [String; 0]);
    let findings = findings_about(PlantedBug::EarlyAcknowledgement).await;
    let finds = |what: &str| findings.iter().any(|one| one.contains(what));
    assert!(
        finds("0 turns were started"),
        "an acknowledged message is lost: {findings:?}"
    );
    assert!(finds("it was run 2 times"), "{findings:?}");
}

#[tokio::test]
async fn the_checker_finds_an_unknown_call_that_is_silently_retried() {
    let findings = findings_about(PlantedBug::SilentRetry).await;
    let finds = |what: &str| findings.iter().any(|one| one.contains(what));
    assert!(finds("it was run 2 times"), "{findings:?}");
}
