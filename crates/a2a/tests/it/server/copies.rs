//! Two servers over one database: what one is at work on is got, listed, followed, cancelled and sent again through the other.

use super::support::{message, soon};
use super::world::{Copy, Shelf, World, on_each, quick};
use lango_a2a::server::RunCause;
use lango_core::{BoxStream, Change, Changes, UserId};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

on_each! { async
    a_task_is_got_and_listed_through_any_copy
    a_stream_of_one_copy_follows_what_another_is_at_work_on
    a_message_that_comes_to_two_copies_at_once_is_one_task
    a_task_is_cancelled_through_any_copy
    a_wish_to_cancel_outlives_whoever_should_have_heard_it
    a_cancel_of_what_nobody_is_at_work_on_takes_effect_at_once
    what_is_at_work_here_or_was_written_just_now_is_not_asked_about
    a_hint_makes_it_quicker
}

async fn two(shelf: &Shelf) -> (Copy, Copy, Arc<World>) {
    let world = Arc::<World>::default();
    let one = Copy::start(shelf, &world).await;
    let other = Copy::start(shelf, &world).await;
    (one, other, world)
}

async fn a_task_is_got_and_listed_through_any_copy(shelf: Shelf) {
    let (one, other, _) = two(&shelf).await;
    one.allow(1);
    let id = one.begin("steps 2").await["id"].clone();
    let listed = other.result("ListTasks", json!({})).await;
    assert_eq!(listed["tasks"][0]["id"], id);
    one.stepped(1).await;
    // What it has so far is there as soon as it is kept.
    soon(async {
        while other.task(&id).await["artifacts"][0]["parts"][0]["text"] != "0 " {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    one.allow(1);
    let done = other.until(&id, "TASK_STATE_COMPLETED").await;
    assert_eq!(done, one.task(&id).await);
    assert_eq!(other.agent.runs.lock().unwrap().len(), 0);
}

async fn a_stream_of_one_copy_follows_what_another_is_at_work_on(shelf: Shelf) {
    let (one, other, _) = two(&shelf).await;
    let id = one.begin("steps 3").await["id"].clone();
    one.until(&id, "TASK_STATE_WORKING").await;
    let mut events = other.subscribe(&id).await;
    let first = events.one().await;
    assert_eq!(first["task"]["id"], id);
    one.allow(1);
    let piece = events.one().await;
    let artifact = &piece["artifactUpdate"]["artifact"];
    assert_eq!(artifact["parts"][0]["text"], "0 ", "{piece}");
    one.allow(2);
    let rest = events.rest().await;
    let mut text = "0 ".to_owned();
    for event in &rest {
        let update = &event["artifactUpdate"];
        if let Some(more) = update["artifact"]["parts"][0]["text"].as_str() {
            if update["append"] == false {
                text.clear();
            }
            text.push_str(more);
        }
    }
    assert_eq!(text, "0 1 2 ", "{rest:?}");
    let last = &rest.last().unwrap()["statusUpdate"]["status"];
    assert_eq!(last, &one.task(&id).await["status"]);

    // And whoever waits for the answer to a message.
    let said = message("steps 1");
    let params = |at_once: bool| json!({ "message": said, "configuration": { "returnImmediately": at_once } });
    let begun = one.result("SendMessage", params(true)).await;
    let waiting = other.result("SendMessage", params(false));
    let (waited, ()) = tokio::join!(waiting, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        one.allow(1);
    });
    assert_eq!(waited["task"]["id"], begun["task"]["id"]);
    assert_eq!(waited["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

async fn a_message_that_comes_to_two_copies_at_once_is_one_task(shelf: Shelf) {
    let (one, other, world) = two(&shelf).await;
    one.allow(20);
    other.allow(20);
    for _ in 0..10 {
        let params = json!({ "message": message("steps 2") });
        let (first, second) = tokio::join!(
            one.result("SendMessage", params.clone()),
            other.result("SendMessage", params.clone())
        );
        assert_eq!(first["task"], second["task"]);
        assert_eq!(other.result("SendMessage", params).await, first);
    }
    assert_eq!(world.begun.lock().unwrap().len(), 10);
    assert_eq!(world.steps.lock().unwrap().len(), 20);
}

async fn a_task_is_cancelled_through_any_copy(shelf: Shelf) {
    let (one, other, world) = two(&shelf).await;
    let id = one.begin("steps 3").await["id"].clone();
    one.until(&id, "TASK_STATE_WORKING").await;
    let events = one.subscribe(&id).await;
    let task = other.result("CancelTask", json!({ "id": id })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(one.task(&id).await, task);
    let events = events.rest().await;
    let last = &events.last().unwrap()["statusUpdate"]["status"]["state"];
    assert_eq!(last, "TASK_STATE_CANCELED");
    assert!(
        one.tasks
            .cancel_requests(None, 10)
            .await
            .unwrap()
            .is_empty()
    );
    let error = one.error("CancelTask", json!({ "id": id })).await;
    assert_eq!(error["code"], -32002);

    // One that waits in line, too.
    let first = one.begin("steps 1").await;
    one.until(&first["id"], "TASK_STATE_WORKING").await;
    let mut queued = message("steps 1");
    queued["contextId"] = first["contextId"].clone();
    let params = json!({ "message": queued, "configuration": { "returnImmediately": true } });
    let queued = one.result("SendMessage", params).await["task"]["id"].clone();
    let task = other.result("CancelTask", json!({ "id": queued })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    one.allow(9);
    one.until(&first["id"], "TASK_STATE_COMPLETED").await;
    let steps = world.steps.lock().unwrap().clone();
    assert_eq!(steps, [(first["id"].as_str().unwrap().to_owned(), 0)]);
}

async fn a_wish_to_cancel_outlives_whoever_should_have_heard_it(shelf: Shelf) {
    let world = Arc::<World>::default();
    let process = tokio::runtime::Runtime::new().unwrap();
    let path = shelf.clone();
    let id = process
        .spawn({
            let world = Arc::clone(&world);
            async move {
                let copy = Copy::start(&path, &world).await;
                copy.allow(1);
                let id = copy.begin("steps 3").await["id"].clone();
                copy.stepped(1).await;
                id
            }
        })
        .await
        .unwrap();
    tokio::task::spawn_blocking(move || drop(process))
        .await
        .unwrap();
    let store = shelf.open();
    let (user, name) = (UserId::new("ann"), id.as_str().unwrap());
    assert!(store.request_cancel(&user, name).await.unwrap());

    let next = Copy::start(&shelf, &world).await;
    next.allow(3);
    next.until(&id, "TASK_STATE_CANCELED").await;
    assert_eq!(world.steps.lock().unwrap().len(), 1);
}

async fn a_cancel_of_what_nobody_is_at_work_on_takes_effect_at_once(shelf: Shelf) {
    let world = Arc::<World>::default();
    // It does not look by itself.
    let mut settings = quick();
    settings.limits.recover_every = Duration::from_secs(3600);
    let survivor = Copy::with(&shelf, &world, None, settings, None).await;
    let process = tokio::runtime::Runtime::new().unwrap();
    let path = shelf.clone();
    let id = process
        .spawn({
            let world = Arc::clone(&world);
            async move {
                let copy = Copy::start(&path, &world).await;
                let id = copy.begin("steps 3").await["id"].clone();
                copy.until(&id, "TASK_STATE_WORKING").await;
                id
            }
        })
        .await
        .unwrap();
    tokio::task::spawn_blocking(move || drop(process))
        .await
        .unwrap();
    let task = survivor.result("CancelTask", json!({ "id": id })).await;
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(world.steps.lock().unwrap().len(), 0);
}

async fn what_is_at_work_here_or_was_written_just_now_is_not_asked_about(shelf: Shelf) {
    let (one, other, world) = two(&shelf).await;
    let id = one.begin("steps 1").await["id"].clone();
    one.until(&id, "TASK_STATE_WORKING").await;
    let looks = || world.looks.load(Ordering::SeqCst);
    // The other asks: by the store nothing has changed.
    soon(async {
        while looks() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    soon(other.server.stop(Duration::ZERO)).await;
    let before = looks();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(looks(), before, "what is at work here was asked about");
    one.allow(1);
    one.until(&id, "TASK_STATE_COMPLETED").await;
    let starts: Vec<RunCause> = one
        .agent
        .runs
        .lock()
        .unwrap()
        .iter()
        .map(|run| run.cause)
        .collect();
    assert_eq!(starts, [RunCause::NewTask]);
    assert_eq!(other.agent.runs.lock().unwrap().len(), 0);
}

/// Hints that the test gives. Clones give the same.
#[derive(Default, Clone)]
struct Told {
    id: Arc<Mutex<String>>,
    now: Arc<Notify>,
}

impl Changes for Told {
    fn changes(&self) -> BoxStream<'static, Change> {
        Box::pin(futures_util::stream::unfold(self.clone(), |told| async {
            told.now.notified().await;
            let id = told.id.lock().unwrap().as_str().into();
            Some((Change::Task(id), told))
        }))
    }
}

async fn a_hint_makes_it_quicker(shelf: Shelf) {
    let world = Arc::<World>::default();
    let told = Told::default();
    // Without one nothing would be seen during the test.
    let mut slow = quick();
    slow.limits.follow_every = Duration::from_secs(3600);
    let changes = Some(Arc::new(told.clone()) as Arc<dyn Changes>);
    let one = Copy::with(&shelf, &world, None, slow.clone(), changes.clone()).await;
    let other = Copy::with(&shelf, &world, None, quick(), None).await;
    let hint = |id: &Value| {
        *told.id.lock().unwrap() = id.as_str().unwrap().to_owned();
        told.now.notify_one();
    };

    let theirs = other.begin("steps 1").await["id"].clone();
    other.until(&theirs, "TASK_STATE_WORKING").await;
    let mut events = one.subscribe(&theirs).await;
    events.one().await;
    other.allow(1);
    other.until(&theirs, "TASK_STATE_COMPLETED").await;
    hint(&theirs);
    let rest = events.rest().await;
    let last = &rest.last().unwrap()["statusUpdate"]["status"]["state"];
    assert_eq!(last, "TASK_STATE_COMPLETED");

    let own = one.begin("steps 1").await["id"].clone();
    one.until(&own, "TASK_STATE_WORKING").await;
    let cancel = other.result("CancelTask", json!({ "id": own }));
    let (task, ()) = tokio::join!(cancel, async {
        while one.tasks.cancel_requests(None, 1).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        hint(&own);
    });
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED");
}
