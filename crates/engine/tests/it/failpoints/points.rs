//! Places where a process can end: before and after everything that the runner does to the world. The seams are wrapped, so
//! the runner under test is the one that is shipped.

use futures_util::{StreamExt, stream};
use lango_core::{
    AgentName, Batch, BoxFuture, BoxLease, BoxStream, BusyPolicy, Caller, Event, Grant, Model,
    ModelError, ModelEvent, ModelRequest, ModelTerms, NewSession, Page, RemoteThread, SessionHead,
    SessionId, SessionStore, StoreError, Tool, ToolError, ToolOutput, ToolSpec, TurnId,
};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The places that one life of a process passes, and the one where it ends.
#[derive(Default)]
pub struct Points {
    ends_at: Option<usize>,
    observer: Option<Observer>,
    passed: Mutex<Vec<String>>,
    ended: Notify,
}

/// Is called with the name of each place.
type Observer = Box<dyn Fn(&str) + Send + Sync>;

impl Points {
    /// Never ends, but yields at each place before it calls the observer.
    pub fn observed_by(observer: impl Fn(&str) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            observer: Some(Box::new(observer)),
            ..Self::default()
        })
    }

    pub fn ending_at(ends_at: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            ends_at,
            ..Self::default()
        })
    }

    /// Passes a place, or ends there: then it never returns.
    async fn pass(&self, place: String) {
        if let Some(observer) = &self.observer {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            observer(&place);
        }
        let number = {
            let mut passed = self.passed.lock().unwrap();
            passed.push(place);
            passed.len() - 1
        };
        if Some(number) == self.ends_at {
            self.ended.notify_one();
            std::future::pending::<()>().await;
        }
    }

    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    pub fn passed(&self) -> Vec<String> {
        self.passed.lock().unwrap().clone()
    }

    async fn around<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        self.pass(format!("before {what}")).await;
        let done = work.await;
        self.pass(format!("after {what}")).await;
        done
    }
}

/// A store with a place before and after each of its operations.
pub struct PointedStore {
    pub inner: Arc<dyn SessionStore>,
    pub points: Arc<Points>,
}

impl SessionStore for PointedStore {
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.points.around("create", self.inner.create(session)))
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        Box::pin(self.points.around("open", self.inner.open(session)))
    }

    fn acquire(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> BoxFuture<'_, Result<BoxLease, StoreError>> {
        let acquiring = self.inner.acquire(session, busy_policy);
        Box::pin(self.points.around("hold", acquiring))
    }

    fn append(&self, events: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        let kinds: Vec<&str> = events.iter().map(|event| event.body.kind()).collect();
        let what = format!("append {}", kinds.join("+"));
        Box::pin(async move { self.points.around(&what, self.inner.append(events)).await })
    }

    fn read(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        Box::pin(self.points.around("read", self.inner.read(session, page)))
    }

    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        self.inner.turn_events(session, turn)
    }

    fn history_of(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<lango_core::Exchange>, StoreError>> {
        self.inner.history_of(session, turn)
    }

    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        let granted = self.inner.grants(session, folder);
        Box::pin(self.points.around("grants", granted))
    }

    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>> {
        self.inner.remote_thread(session, agent)
    }
}

/// A model with a place before it is asked and after it replied.
pub struct PointedModel<M> {
    pub inner: M,
    pub points: Arc<Points>,
}

impl<M: Model> Model for PointedModel<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn terms(&self) -> ModelTerms {
        self.inner.terms()
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let replying = async move {
            let stream = self.inner.call(request);
            let items = self.points.around("model", stream.collect::<Vec<_>>());
            stream::iter(items.await)
        };
        stream::once(replying).flatten().boxed()
    }
}

/// A tool with a place before it is called, and one after it did what it does and before anybody knows.
pub struct PointedTool {
    pub inner: Arc<dyn Tool>,
    pub points: Arc<Points>,
}

impl Tool for PointedTool {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let what = format!("tool {}", self.spec().name);
            // Nothing of it may happen before it is awaited.
            let running = async { self.inner.run(caller, arguments).await };
            self.points.around(&what, running).await
        })
    }
}
