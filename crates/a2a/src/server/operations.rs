//! The operations of the protocol, which both bindings share. Each takes a validated request and returns its answer as
//! JSON, or a stream of updates.

use super::FileError;
use super::actor::{Reply, SubmitResult, Subscription};
use super::message_identity;
use super::refusal::{Refusal, RefusalKind};
use super::render::{self, View};
use super::repetition::Repetition;
use super::request::{ListRequest, Operation, SendRequest, page_token};
use super::shared::{Key, Shared};
use super::stream::{ClosePolicy, Updates};
use super::task::{Request, Task, TaskDocument, is_settled, length};
use a2a::{Message, Role, TaskState};
use futures_util::StreamExt as _;
use lango_core::{TaskQuery, TaskRecord, UserId};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::error::RecvError;

/// How many additional tasks one message may open.
const MAX_REPEATED_OPENINGS: usize = 64;

/// The answer to an operation.
pub(super) enum OperationAnswer {
    /// A single JSON value.
    Whole(String),
    Stream(Updates),
}

/// Performs an operation. `large` is the permit of a large request body.
pub(super) async fn perform(
    shared: &Arc<Shared>,
    user: UserId,
    operation: Operation,
    large: Option<OwnedSemaphorePermit>,
) -> Result<OperationAnswer, Refusal> {
    match operation {
        Operation::Send(request) => {
            let request = store_files(shared, &user, request, large).await?;
            send(shared, user, request)
                .await
                .map(OperationAnswer::Whole)
        }
        Operation::Stream(request) => {
            let request = store_files(shared, &user, request, large).await?;
            stream(shared, user, request)
                .await
                .map(OperationAnswer::Stream)
        }
        Operation::Get { id, view } => get(shared, user, id, view)
            .await
            .map(OperationAnswer::Whole),
        Operation::List(request) => list(shared, &user, request)
            .await
            .map(OperationAnswer::Whole),
        Operation::Cancel { id } => {
            let key = (user, id);
            let cancelled = shared.ask(&key, Request::Cancel, Reply::Snapshot);
            let subscription = cancelled.await?;
            Ok(OperationAnswer::Whole(subscription.json))
        }
        Operation::Subscribe { id } => subscribe(shared, (user, id))
            .await
            .map(OperationAnswer::Stream),
    }
}

/// Cancels a task. Returns false if there is no such task or it cannot be cancelled.
pub(super) async fn cancel(shared: &Arc<Shared>, key: Key) -> bool {
    let cancelled = shared.ask(&key, Request::Cancel, Reply::Snapshot);
    cancelled.await.is_ok()
}

/// Lets the agent store the files of a message. The rest of the message must fit into a task. Afterwards the large body
/// is dropped, and its slot is free.
async fn store_files(
    shared: &Shared,
    user: &UserId,
    request: SendRequest,
    large: Option<OwnedSemaphorePermit>,
) -> Result<SendRequest, Refusal> {
    let stored = shared.backend.store_files(user, request.message).await;
    let message = stored.map_err(|error| match error {
        FileError::Message(error) => error.into(),
        FileError::Store(_) => Refusal::store_failure(),
    })?;
    let max_bytes = shared.settings.limits.task_bytes;
    if large.is_some() && length(&message) > max_bytes {
        let problem = format!("is larger than {max_bytes} bytes, even without its files");
        return Err(Refusal::field("message", problem));
    }
    Ok(SendRequest { message, ..request })
}

/// The result of sending a message.
enum SendResult {
    Message(String),
    Task(Key, Subscription),
}

/// Submits a message to its task, or opens a new task.
async fn submit(
    shared: &Arc<Shared>,
    user: UserId,
    request: SendRequest,
) -> Result<SendResult, Refusal> {
    let SendRequest { message, view, .. } = request;
    let (key, submitted) = match message.task_id.clone() {
        Some(id) => {
            let key = (user, id);
            let message = Box::new(message);
            let request = Request::Submit { message, view };
            let submitted = shared.ask(&key, request, Reply::Submit).await?;
            (key, submitted)
        }
        None => {
            let context = message.context_id.clone();
            let context = context.unwrap_or_else(a2a::new_context_id);
            if let Some(reply) = answer_directly(shared, &user, &context, &message).await {
                return Ok(SendResult::Message(reply));
            }
            open(shared, user, context, message, view).await?
        }
    };
    match submitted {
        SubmitResult::Task(subscription) => Ok(SendResult::Task(key, subscription)),
        SubmitResult::Known(id) => {
            let key = (key.0, id);
            let subscription = watch(shared, &key, view).await?;
            Ok(SendResult::Task(key, subscription))
        }
        SubmitResult::OpenAgain(_) => Err(Refusal::field(
            "message.messageId",
            "has already opened too many tasks; use a new id",
        )),
    }
}

/// Asks the agent to answer the message without creating a task.
async fn answer_directly(
    shared: &Shared,
    user: &UserId,
    context: &str,
    message: &Message,
) -> Option<String> {
    let answer = shared.backend.answer_directly(user, context, message);
    let timeout = shared.settings.limits.stop_timeout;
    let answer = tokio::time::timeout(timeout, answer).await.ok()??;
    let mut reply = Message::new(Role::Agent, answer.parts);
    reply.context_id = Some(context.to_owned());
    reply.metadata = (!answer.metadata.is_empty()).then(|| answer.metadata.into_iter().collect());
    Some(render::json(&reply))
}

/// Opens a task for a message. If the message has already opened a task, and is not a retry, opens another task. All
/// replicas derive the same idempotency key for the new task.
async fn open(
    shared: &Arc<Shared>,
    user: UserId,
    context: String,
    message: Message,
    view: View,
) -> Result<(Key, SubmitResult), Refusal> {
    let mut idempotency_key = message_identity::idempotency_key(&message);
    let mut id = a2a::new_task_id();
    let (mut its_context, mut its_message) = (context.clone(), message.clone());
    let mut tries = MAX_REPEATED_OPENINGS;
    loop {
        let key = (user.clone(), id.clone());
        let now = shared.clock.now();
        let limits = shared.settings.limits;
        let document = TaskDocument::open(id, its_context, its_message.clone(), now, limits);
        let task = Task::open(document, idempotency_key.clone());
        let request = Request::Submit {
            message: Box::new(its_message),
            view,
        };
        let submitted = shared.open(&key, task, request, Reply::Submit).await?;
        let SubmitResult::OpenAgain(repetition) = &submitted else {
            return Ok((key, submitted));
        };
        if tries == 0 {
            return Ok((key, submitted));
        }
        tries -= 1;
        idempotency_key = repetition.key(&idempotency_key);
        id = repetition.task_id();
        (its_context, its_message) = match repetition {
            Repetition::NewWork { .. } => (context.clone(), message.clone()),
            Repetition::Attempt {
                context, message, ..
            } => (context.clone(), (**message).clone()),
        };
    }
}

async fn send(shared: &Arc<Shared>, user: UserId, request: SendRequest) -> Result<String, Refusal> {
    let view = request.view;
    let returns_immediately = request.returns_immediately;
    let (key, subscription) = match submit(shared, user, request).await? {
        SendResult::Message(message) => return Ok(format!("{{\"message\":{message}}}")),
        SendResult::Task(key, subscription) => (key, subscription),
    };
    let task = if returns_immediately || is_settled(&subscription.state) {
        subscription.json
    } else {
        settled(shared, &key, view, subscription).await?
    };
    Ok(format!("{{\"task\":{task}}}"))
}

/// Waits until a task has ended or needs a message or an approval, and returns it.
async fn settled(
    shared: &Arc<Shared>,
    key: &Key,
    view: View,
    subscription: Subscription,
) -> Result<String, Refusal> {
    let mut updates = subscription.updates;
    loop {
        match updates.recv().await {
            Ok(published) => {
                if let Some(task) = published.settled {
                    return Ok(render::task(&task, view));
                }
            }
            Err(RecvError::Closed) => break,
            Err(RecvError::Lagged(_)) => {
                let subscription = watch(shared, key, view).await?;
                if is_settled(&subscription.state) {
                    return Ok(subscription.json);
                }
                updates = subscription.updates;
            }
        }
    }
    Ok(watch(shared, key, view).await?.json)
}

async fn watch(shared: &Arc<Shared>, key: &Key, view: View) -> Result<Subscription, Refusal> {
    shared.ask(key, Request::Watch(view), Reply::Snapshot).await
}

async fn stream(
    shared: &Arc<Shared>,
    user: UserId,
    request: SendRequest,
) -> Result<Updates, Refusal> {
    let permit = Updates::permit(shared)?;
    let view = request.view;
    match submit(shared, user, request).await? {
        SendResult::Message(message) => {
            let json = format!("{{\"message\":{message}}}");
            Ok(Updates::single(json, permit))
        }
        SendResult::Task(key, subscription) => {
            let shared = Arc::clone(shared);
            Ok(Updates::new(
                shared,
                key,
                view,
                subscription,
                ClosePolicy::OnInputRequired,
                permit,
            ))
        }
    }
}

async fn subscribe(shared: &Arc<Shared>, key: Key) -> Result<Updates, Refusal> {
    let permit = Updates::permit(shared)?;
    let view = View::default();
    let subscription = watch(shared, &key, view).await?;
    if subscription.state.is_terminal() {
        let message = format!(
            "the task has ended as `{}` and has no more updates; use `GetTask` instead",
            render::state_name(&subscription.state)
        );
        let refusal = Refusal::new(RefusalKind::UnsupportedOperation, message);
        return Err(refusal.about("taskId", key.1));
    }
    let shared = Arc::clone(shared);
    let close = ClosePolicy::OnEnd;
    Ok(Updates::new(shared, key, view, subscription, close, permit))
}

async fn get(
    shared: &Arc<Shared>,
    user: UserId,
    id: String,
    view: View,
) -> Result<String, Refusal> {
    let key = (user, id);
    Ok(watch(shared, &key, view).await?.json)
}

/// The maximum size of a page of tasks, in bytes. A longer page ends early, as the protocol allows.
const PAGE_BYTES: usize = 4 << 20;

/// How many tasks to read at a time.
const BATCH: usize = 16;

/// How many tasks with pending approvals to refresh before a list, and how many of them concurrently.
const MAX_REFRESHED: usize = 100;
const REFRESH_CONCURRENCY: usize = 8;

/// Updates a task with the agent's status.
pub(super) async fn refresh(shared: &Arc<Shared>, key: Key) {
    // If the task cannot be loaded now, it stays unchanged.
    let _ = watch(shared, &key, View::default()).await;
}

/// Refreshes the newest tasks that wait for an approval, because another process may have answered it.
async fn refresh_waiting(
    shared: &Arc<Shared>,
    user: &UserId,
    query: &TaskQuery,
) -> Result<(), Refusal> {
    let waiting = TaskQuery {
        context: query.context.clone(),
        state: Some(render::state_name(&TaskState::AuthRequired).into()),
        limit: MAX_REFRESHED,
        ..TaskQuery::default()
    };
    let page = shared.tasks.list(user, waiting).await;
    let page = page.map_err(|_| Refusal::store_failure())?;
    let refreshed = page.tasks.into_iter().map(|task| {
        let key = (user.clone(), task.id.to_string());
        refresh(shared, key)
    });
    let refreshed = futures_util::stream::iter(refreshed).buffer_unordered(REFRESH_CONCURRENCY);
    refreshed.collect::<()>().await;
    Ok(())
}

async fn list(
    shared: &Arc<Shared>,
    user: &UserId,
    request: ListRequest,
) -> Result<String, Refusal> {
    let ListRequest { mut query, view } = request;
    refresh_waiting(shared, user, &query).await?;
    let size = query.limit;
    let mut listed: Vec<String> = Vec::new();
    let mut bytes = 0;
    let mut next = String::new();
    // Read one task more than the page holds, to find out whether there is a next page.
    let mut total = None;
    'pages: loop {
        query.limit = (size + 1 - listed.len()).min(BATCH);
        query.is_counted = total.is_none();
        let page = shared.tasks.list(user, query.clone()).await;
        let page = page.map_err(|_| Refusal::store_failure())?;
        let is_last = page.tasks.len() < query.limit;
        total = total.or(page.total);
        for record in &page.tasks {
            if listed.len() == size || bytes > PAGE_BYTES {
                if let Some((updated, id)) = &query.after {
                    next = page_token(*updated, id);
                }
                break 'pages;
            }
            // Skip a task that cannot be parsed, so that the others can be listed.
            if let Ok(task) = read(record, view) {
                bytes += task.len();
                listed.push(task);
            }
            query.after = Some((record.updated, Arc::clone(&record.id)));
        }
        if is_last {
            break;
        }
    }
    let tasks = listed.join(",");
    let total = total
        .unwrap_or_default()
        .min(i32::MAX.unsigned_abs().into());
    let next = render::json(&next);
    Ok(format!(
        "{{\"tasks\":[{tasks}],\"nextPageToken\":{next},\"pageSize\":{size},\"totalSize\":{total}}}"
    ))
}

fn read(record: &TaskRecord, view: View) -> Result<String, Refusal> {
    let task: a2a::Task =
        serde_json::from_str(&record.body).map_err(|_| Refusal::damaged(&record.id))?;
    Ok(render::task(&task, view))
}
