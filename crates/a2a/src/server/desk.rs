//! The operations of the protocol, the same for both bindings: each takes what was read from a request and gives the JSON
//! of its answer, or a stream of updates.

use super::FilesNotStored;
use super::keeper::{Begin, Begun, Command, Watching};
use super::ledger::{Ledger, is_settled, length};
use super::refusal::{Kind, Refusal};
use super::request::{ListRequest, Operation, SendRequest, page_token};
use super::said;
use super::shared::{Key, Shared};
use super::shown::{self, View};
use super::stream::{Closing, Updates};
use a2a::{Message, Role, Task};
use lango_core::{TaskRecord, UserId};
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// The answer to an operation.
pub(super) enum Answer {
    /// One JSON value.
    Whole(String),
    /// Updates, as they come.
    Stream(Updates),
}

/// Does what a client wants.
pub(super) async fn perform(
    shared: &Arc<Shared>,
    user: UserId,
    operation: Operation,
    large: Option<OwnedSemaphorePermit>,
) -> Result<Answer, Refusal> {
    match operation {
        Operation::Send(request) => {
            let request = store_files(shared, &user, request, large).await?;
            send(shared, user, request).await.map(Answer::Whole)
        }
        Operation::Stream(request) => {
            let request = store_files(shared, &user, request, large).await?;
            stream(shared, user, request).await.map(Answer::Stream)
        }
        Operation::Get { id, view } => get(shared, user, id, view).await.map(Answer::Whole),
        Operation::List(request) => list(shared, &user, request).await.map(Answer::Whole),
        Operation::Cancel { id } => {
            let key = (user, id);
            let watching = shared.ask(&key, |reply| Command::Cancel { reply }).await?;
            Ok(Answer::Whole(watching.json))
        }
        Operation::Subscribe { id } => subscribe(shared, (user, id)).await.map(Answer::Stream),
    }
}

/// Hands the files of a message to the agent; what is left of the message has to fit into a task. After that the large body
/// is gone, and its place is free.
async fn store_files(
    shared: &Shared,
    user: &UserId,
    request: SendRequest,
    large: Option<OwnedSemaphorePermit>,
) -> Result<SendRequest, Refusal> {
    let stored = shared.behind.store_files(user, request.message).await;
    let message = stored.map_err(|error| match error {
        FilesNotStored::Unfit(unfit) => unfit.into(),
        FilesNotStored::Store(error) => Refusal::store(&error),
    })?;
    let most = shared.settings.limits.task_bytes;
    if large.is_some() && length(&message) > most {
        let problem = format!("may have {most} bytes at most, without its files");
        return Err(Refusal::field("message", problem));
    }
    Ok(SendRequest { message, ..request })
}

/// What a message led to.
enum Sent {
    Message(String),
    Task(Key, Watching),
}

/// Hands a message to the agent.
async fn submit(shared: &Arc<Shared>, user: UserId, request: SendRequest) -> Result<Sent, Refusal> {
    let SendRequest { message, view, .. } = request;
    if let Some(id) = message.task_id.clone() {
        let key = (user, id);
        let begin = |reply| {
            Command::Begin(Box::new(Begin {
                message: message.clone(),
                view,
                mark: None,
                reply,
            }))
        };
        let begun = shared.ask(&key, begin).await?;
        return of_begun(shared, key, view, begun).await;
    }
    let context = message.context_id.clone();
    let context = context.unwrap_or_else(a2a::new_context_id);
    let answer = shared.behind.answer_at_once(&user, &context, &message);
    let patience = shared.settings.limits.stop_wait;
    let answer = tokio::time::timeout(patience, answer).await;
    if let Ok(Some(words)) = answer {
        let mut reply = Message::new(Role::Agent, words.parts);
        reply.context_id = Some(context);
        reply.metadata = (!words.metadata.is_empty()).then(|| words.metadata.into_iter().collect());
        return Ok(Sent::Message(shown::json(&reply)));
    }
    let id = a2a::new_task_id();
    let mark = said::mark(&message);
    let key = (user, id.clone());
    let now = shared.clock.now();
    let limits = shared.settings.limits;
    let ledger = Ledger::open(id, context, message.clone(), now, limits);
    let (reply, answer) = oneshot::channel();
    let begin = Begin {
        message,
        view,
        mark: Some(mark),
        reply,
    };
    shared.open(&key, ledger, Command::Begin(Box::new(begin)));
    let begun = answer
        .await
        .map_err(|_| Refusal::new(Kind::Internal, "the task could not be opened"))??;
    of_begun(shared, key, view, begun).await
}

/// The task that a message began, now or when it came before.
async fn of_begun(
    shared: &Arc<Shared>,
    key: Key,
    view: View,
    begun: Begun,
) -> Result<Sent, Refusal> {
    match begun {
        Begun::Now(watching) => Ok(Sent::Task(key, watching)),
        Begun::Before(id) => {
            let key = (key.0, id);
            let watching = look(shared, &key, view).await?;
            Ok(Sent::Task(key, watching))
        }
    }
}

async fn send(shared: &Arc<Shared>, user: UserId, request: SendRequest) -> Result<String, Refusal> {
    let view = request.view;
    let returns_at_once = request.returns_at_once;
    let (key, watching) = match submit(shared, user, request).await? {
        Sent::Message(message) => return Ok(format!("{{\"message\":{message}}}")),
        Sent::Task(key, watching) => (key, watching),
    };
    let task = if returns_at_once || is_settled(&watching.state) {
        watching.json
    } else {
        settled(shared, &key, view, watching).await?
    };
    Ok(format!("{{\"task\":{task}}}"))
}

/// Waits until nobody is at work on a task any more, and shows it.
async fn settled(
    shared: &Arc<Shared>,
    key: &Key,
    view: View,
    watching: Watching,
) -> Result<String, Refusal> {
    let mut updates = watching.updates;
    loop {
        match updates.recv().await {
            Ok(update) if !is_settled(&update.state) => {}
            Ok(_) | Err(RecvError::Closed) => break,
            Err(RecvError::Lagged(_)) => {
                let watching = look(shared, key, view).await?;
                if is_settled(&watching.state) {
                    return Ok(watching.json);
                }
                updates = watching.updates;
            }
        }
    }
    Ok(look(shared, key, view).await?.json)
}

async fn look(shared: &Arc<Shared>, key: &Key, view: View) -> Result<Watching, Refusal> {
    shared
        .ask(key, |reply| Command::Watch { view, reply })
        .await
}

async fn stream(
    shared: &Arc<Shared>,
    user: UserId,
    request: SendRequest,
) -> Result<Updates, Refusal> {
    let permit = Updates::permit(shared)?;
    let view = request.view;
    match submit(shared, user, request).await? {
        Sent::Message(message) => {
            let json = format!("{{\"message\":{message}}}");
            Ok(Updates::one(json, permit))
        }
        Sent::Task(key, watching) => {
            let shared = Arc::clone(shared);
            Ok(Updates::new(
                shared,
                key,
                view,
                watching,
                Closing::WhenInputIsNeeded,
                permit,
            ))
        }
    }
}

async fn subscribe(shared: &Arc<Shared>, key: Key) -> Result<Updates, Refusal> {
    let permit = Updates::permit(shared)?;
    let view = View::default();
    let watching = look(shared, &key, view).await?;
    if watching.state.is_terminal() {
        let message = format!(
            "the task has ended as `{}`, nothing more comes; get it instead",
            shown::word(&watching.state)
        );
        let refusal = Refusal::new(Kind::UnsupportedOperation, message);
        return Err(refusal.about("taskId", key.1));
    }
    let shared = Arc::clone(shared);
    let closing = Closing::AtTheEnd;
    Ok(Updates::new(shared, key, view, watching, closing, permit))
}

async fn get(
    shared: &Arc<Shared>,
    user: UserId,
    id: String,
    view: View,
) -> Result<String, Refusal> {
    let key = (user, id);
    Ok(look(shared, &key, view).await?.json)
}

/// How long the tasks of one page may be together. A longer page ends early; the protocol lets it.
const PAGE_BYTES: usize = 4 << 20;

/// How many tasks are read at a time.
const BATCH: usize = 16;

async fn list(shared: &Shared, user: &UserId, request: ListRequest) -> Result<String, Refusal> {
    let ListRequest { mut query, view } = request;
    let size = query.limit;
    let mut shown: Vec<String> = Vec::new();
    let mut bytes = 0;
    let mut next = String::new();
    // One more than is shown says whether there is a next page.
    let mut total = None;
    'pages: loop {
        query.limit = (size + 1 - shown.len()).min(BATCH);
        query.is_counted = total.is_none();
        let page = shared.tasks.list(user, query.clone()).await;
        let page = page.map_err(|error| Refusal::store(&error))?;
        let is_last = page.tasks.len() < query.limit;
        total = total.or(page.total);
        for record in &page.tasks {
            if shown.len() == size || bytes > PAGE_BYTES {
                if let Some((updated, id)) = &query.after {
                    next = page_token(*updated, id);
                }
                break 'pages;
            }
            // One that cannot be read is left out, so that the others can be.
            if let Ok(task) = read(record, view) {
                bytes += task.len();
                shown.push(task);
            }
            query.after = Some((record.updated, Arc::clone(&record.id)));
        }
        if is_last {
            break;
        }
    }
    let tasks = shown.join(",");
    let total = total
        .unwrap_or_default()
        .min(i32::MAX.unsigned_abs().into());
    let next = shown::json(&next);
    Ok(format!(
        "{{\"tasks\":[{tasks}],\"nextPageToken\":{next},\"pageSize\":{size},\"totalSize\":{total}}}"
    ))
}

fn read(record: &TaskRecord, view: View) -> Result<String, Refusal> {
    let task: Task = serde_json::from_str(&record.body)
        .map_err(|_| Refusal::new(Kind::Internal, format!("task `{}` is damaged", record.id)))?;
    Ok(shown::task(&task, view))
}
