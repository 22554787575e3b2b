//! Fail points: the process can end before and after everything that the runner does to the outside world. The traits
//! are wrapped, so the tested runner is the one that ships.

use futures_util::{StreamExt, stream};
use lango_core::{
    AgentName, BoxFuture, BoxLease, BoxStream, BusyPolicy, Caller, Event, EventBatch, EventRange,
    Grant, Model, ModelError, ModelEvent, ModelInfo, ModelRequest, NewSession, RemoteThread,
    SessionHead, SessionId, SessionStore, StoreError, Tool, ToolError, ToolOutput, ToolSpec,
    TurnId,
};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The fail points that one process passes, and the one where it ends.
#[derive(Default)]
pub(crate) struct FailPoints {
    ends_at: Option<usize>,
    observer: Option<Observer>,
    passed: Mutex<Vec<String>>,
    ended: Notify,
}

/// A callback that gets the name of each fail point.
type Observer = Box<dyn Fn(&str) + Send + Sync>;

impl FailPoints {
    /// Never ends the process, but yields at each fail point and calls the observer.
    pub(crate) fn observed_by(observer: impl Fn(&str) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            observer: Some(Box::new(observer)),
            ..Self::default()
        })
    }

    pub(crate) fn ending_at(ends_at: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            ends_at,
            ..Self::default()
        })
    }

    /// Passes a fail point, or ends the process there: then it never returns.
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

    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }

    pub(crate) fn passed(&self) -> Vec<String> {
        self.passed.lock().unwrap().clone()
    }

    async fn around<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        self.pass(format!("before {what}")).await;
        let done = work.await;
        self.pass(format!("after {what}")).await;
        done
    }
}

/// A store with a fail point before and after each operation.
pub(crate) struct FailPointStore {
    pub inner: Arc<dyn SessionStore>,
    pub points: Arc<FailPoints>,
}

impl SessionStore for FailPointStore {
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.points.around("create", self.inner.create(session)))
    }

    fn read_head(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        Box::pin(
            self.points
                .around("read_head", self.inner.read_head(session)),
        )
    }

    fn acquire(
        &self,
        session: &SessionId,
        busy_policy: BusyPolicy,
    ) -> BoxFuture<'_, Result<BoxLease, StoreError>> {
        let acquiring = self.inner.acquire(session, busy_policy);
        Box::pin(self.points.around("hold", acquiring))
    }

    fn append(&self, events: EventBatch) -> BoxFuture<'_, Result<(), StoreError>> {
        let kinds: Vec<&str> = events.iter().map(|event| event.body.kind()).collect();
        let what = format!("append {}", kinds.join("+"));
        Box::pin(async move { self.points.around(&what, self.inner.append(events)).await })
    }

    fn read(
        &self,
        session: &SessionId,
        page: EventRange,
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

    fn undone_seq(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        self.inner.undone_seq(session, turn)
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

/// A model with a fail point before each call and after each reply.
pub(crate) struct FailPointModel<M> {
    pub inner: M,
    pub points: Arc<FailPoints>,
}

impl<M: Model> Model for FailPointModel<M> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn info(&self) -> ModelInfo {
        self.inner.info()
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

/// A tool with a fail point before each run, and one after it took effect but before the result is known.
pub(crate) struct FailPointTool {
    pub inner: Arc<dyn Tool>,
    pub points: Arc<FailPoints>,
}

impl Tool for FailPointTool {
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
            // Nothing may happen before the future is awaited.
            let running = async { self.inner.run(caller, arguments).await };
            self.points.around(&what, running).await
        })
    }
}
