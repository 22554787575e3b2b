//! Cases about the tasks of remote clients.

use super::StoreUnderTest;
use futures_util::future::join;
use lango_core::{
    RunningTask, TaskInsertOutcome, TaskPutOutcome, TaskQuery, TaskRecord, Text, Timestamp, UserId,
};

/// A task reads back as it was stored, is replaced as a whole, and only its user can read or replace it.
pub async fn a_task_reads_back_unchanged_and_only_for_its_user(subject: StoreUnderTest) {
    let (ann, bob) = (UserId::from("ann"), UserId::from("bob"));
    let tasks = &subject.tasks;
    let first = task("t_1", "ann", "c_1", "WORKING", 5);
    open(&subject, first.clone()).await;
    assert_eq!(
        tasks.get(&ann, "t_1").await.ok().flatten(),
        Some(first.clone())
    );
    assert_eq!(tasks.get(&bob, "t_1").await.ok().flatten(), None);
    assert_eq!(tasks.get(&ann, "t_2").await.ok().flatten(), None);
    let later = TaskRecord {
        state: "COMPLETED".into(),
        is_running: false,
        updated: Timestamp(9),
        body: "{\"done\": \"grüß\"}".into(),
        revision: 2,
        attempts: 3,
        ..first.clone()
    };
    assert_eq!(
        tasks.put(later.clone()).await.ok(),
        Some(TaskPutOutcome::Stored)
    );
    assert_eq!(
        tasks.get(&ann, "t_1").await.ok().flatten(),
        Some(later.clone())
    );
    let stolen = TaskRecord {
        user: bob.clone(),
        revision: 3,
        ..first
    };
    tasks
        .put(stolen)
        .await
        .expect_err("the task belongs to another user");
    assert_eq!(tasks.get(&ann, "t_1").await.ok().flatten(), Some(later));
    assert_eq!(tasks.get(&bob, "t_1").await.ok().flatten(), None);
}

/// A put with any revision but the next one is reported as overtaken.
pub async fn a_put_with_a_stale_revision_changes_nothing(subject: StoreUnderTest) {
    let ann = UserId::from("ann");
    let first = task("t_1", "ann", "c_1", "WORKING", 5);
    open(&subject, first.clone()).await;
    let updated = |revision: u64, state: &str| TaskRecord {
        state: state.into(),
        revision,
        ..first.clone()
    };
    let put = |task: TaskRecord| async { subject.tasks.put(task).await.ok() };
    assert_eq!(
        put(updated(2, "COMPLETED")).await,
        Some(TaskPutOutcome::Stored)
    );
    for revision in [1, 2, 4] {
        assert_eq!(
            put(updated(revision, "WORKING")).await,
            Some(TaskPutOutcome::Outdated)
        );
    }
    let stored = subject.tasks.get(&ann, "t_1").await.ok().flatten();
    assert_eq!(stored, Some(updated(2, "COMPLETED")));
    let missing = TaskRecord {
        id: "t_2".into(),
        ..updated(2, "WORKING")
    };
    assert_eq!(put(missing).await, Some(TaskPutOutcome::Outdated));
    assert_eq!(subject.tasks.get(&ann, "t_2").await.ok().flatten(), None);
}

/// A message that is sent again, even concurrently, does not create a second task for the same user.
pub async fn a_message_creates_one_task(subject: StoreUnderTest) {
    let opened = |id: &str, user: &str, message: &'static str| {
        let task = task(id, user, "c_1", "SUBMITTED", 1);
        let tasks = &subject.tasks;
        async move {
            tasks
                .insert(task, message)
                .await
                .expect("tasks can be inserted")
        }
    };
    let (one, two) = join(opened("t_1", "ann", "m"), opened("t_2", "ann", "m")).await;
    let known = match (one, two) {
        (TaskInsertOutcome::New, TaskInsertOutcome::Known(id)) => (id, "t_1"),
        (TaskInsertOutcome::Known(id), TaskInsertOutcome::New) => (id, "t_2"),
        both => panic!("one message created {both:?}"),
    };
    assert_eq!(&*known.0, known.1);
    let by = |user: &'static str| {
        let tasks = &subject.tasks;
        async move { tasks.opened_by(&user.into(), "m").await.ok().flatten() }
    };
    assert_eq!(
        (by("ann").await.as_deref(), by("bob").await),
        (Some(known.1), None)
    );
    let again = opened("t_3", "ann", "m").await;
    assert_eq!(again, TaskInsertOutcome::Known(known.0));
    assert_eq!(opened("t_4", "bob", "m").await, TaskInsertOutcome::New);
    assert_eq!(opened("t_5", "ann", "n").await, TaskInsertOutcome::New);
    let running = subject.tasks.running(None, 10).await;
    assert_eq!(running.map(|tasks| tasks.len()).ok(), Some(3));
}

/// A cancel request is listed until the task is no longer running.
pub async fn cancellation_of_a_running_task_can_be_requested(subject: StoreUnderTest) {
    let (ann, bob) = (UserId::from("ann"), UserId::from("bob"));
    let mut ended = task("t_0", "ann", "c_1", "COMPLETED", 1);
    ended.is_running = false;
    open(&subject, ended).await;
    for id in ["t_1", "t_2", "t_3"] {
        open(&subject, task(id, "ann", "c_1", "WORKING", 1)).await;
    }
    let cancel = |user: UserId, id: &'static str| {
        let tasks = &subject.tasks;
        async move { tasks.request_cancel(&user, id).await.ok() }
    };
    assert_eq!(cancel(ann.clone(), "t_0").await, Some(false));
    assert_eq!(cancel(bob, "t_1").await, Some(false));
    assert_eq!(cancel(ann.clone(), "t_9").await, Some(false));
    for id in ["t_3", "t_1", "t_1"] {
        assert_eq!(cancel(ann.clone(), id).await, Some(true));
    }
    let requested = async |after, limit| {
        let requested = subject.tasks.cancel_requests(after, limit).await;
        requested.expect("cancel requests can be listed").join(" ")
    };
    assert_eq!(requested(None, 10).await, "t_1 t_3");
    assert_eq!(requested(None, 1).await, "t_1");
    assert_eq!(requested(Some("t_1"), 10).await, "t_3");
    let mut working = task("t_1", "ann", "c_1", "WORKING", 2);
    working.revision = 2;
    subject
        .tasks
        .put(working)
        .await
        .expect("a task can be stored");
    assert_eq!(requested(None, 10).await, "t_1 t_3");
    let mut ended = task("t_1", "ann", "c_1", "CANCELED", 3);
    (ended.revision, ended.is_running) = (3, false);
    subject
        .tasks
        .put(ended)
        .await
        .expect("a task can be stored");
    assert_eq!(requested(None, 10).await, "t_3");
}

/// Pages are ordered by the latest change, repeat no task and leave none out.
pub async fn tasks_are_listed_in_pages_latest_first(subject: StoreUnderTest) {
    for number in 0..23_u64 {
        let id = format!("t_{number:02}");
        // Groups of three share a time.
        let task = task(&id, "ann", "c_1", "WORKING", 100 + number / 3);
        open(&subject, task).await;
    }
    let other = task("t_x", "bob", "c_1", "WORKING", 500);
    open(&subject, other).await;
    let mut seen: Vec<(Timestamp, Text)> = Vec::new();
    loop {
        let query = TaskQuery {
            after: seen.last().cloned(),
            limit: 4,
            is_counted: seen.len().is_multiple_of(8),
            ..TaskQuery::default()
        };
        let is_counted = query.is_counted;
        let (found, total) = list(&subject, query).await;
        assert_eq!(total, is_counted.then_some(23), "counted if asked for");
        if found.is_empty() {
            break;
        }
        assert!(found.len() <= 4);
        seen.extend(found.into_iter().map(|task| (task.updated, task.id)));
    }
    assert_eq!(seen.len(), 23);
    assert!(seen.is_sorted_by(|before, after| before > after));
}

/// The filters work alone and combined.
pub async fn tasks_are_found_by_context_state_and_time(subject: StoreUnderTest) {
    for (id, context, state, time) in [
        ("t_1", "c_1", "WORKING", 1),
        ("t_2", "c_1", "COMPLETED", 2),
        ("t_3", "c_2", "COMPLETED", 3),
        ("t_4", "c_2", "WORKING", 4),
    ] {
        let task = task(id, "ann", context, state, time);
        open(&subject, task).await;
    }
    let all = [
        (None, None, None, "t_4 t_3 t_2 t_1"),
        (Some("c_1"), None, None, "t_2 t_1"),
        (None, Some("COMPLETED"), None, "t_3 t_2"),
        (Some("c_2"), Some("COMPLETED"), None, "t_3"),
        (None, None, Some(3), "t_4 t_3"),
        (Some("c_2"), None, Some(4), "t_4"),
        (Some("c_1"), Some("COMPLETED"), Some(3), ""),
    ];
    for (context, state, since, expected) in all {
        let query = TaskQuery {
            context: context.map(Into::into),
            state: state.map(Into::into),
            since: since.map(Timestamp),
            after: None,
            limit: 10,
            is_counted: true,
        };
        let (found, total) = list(&subject, query).await;
        let ids: Vec<&str> = found.iter().map(|task| &*task.id).collect();
        assert_eq!(ids.join(" "), expected);
        assert_eq!(total, Some(ids.len() as u64));
    }
}

/// A server that starts finds the running tasks of every user, in pages.
pub async fn running_tasks_of_all_users_are_found(subject: StoreUnderTest) {
    let mut ended = task("t_1", "ann", "c_1", "COMPLETED", 1);
    ended.is_running = false;
    let records = [
        ended,
        task("t_2", "ann", "c_1", "WORKING", 2),
        task("t_3", "bob", "c_2", "WORKING", 3),
    ];
    for record in records {
        open(&subject, record).await;
    }
    let running = |after, limit| {
        let tasks = &subject.tasks;
        async move {
            let running = tasks.running(after, limit).await;
            running.expect("running tasks can be listed")
        }
    };
    let all = running(None, 10).await;
    let ids: Vec<&str> = all.iter().map(|task| &*task.id).collect();
    assert_eq!(ids, ["t_2", "t_3"]);
    let (user, context) = (all[1].user.as_str(), &*all[1].context);
    assert_eq!((user, context), ("bob", "c_2"));
    assert_eq!((all[1].updated, all[1].revision), (Timestamp(3), 1));
    assert_eq!(running(None, 1).await, all[..1]);
    let cursor = |task: &RunningTask| Some((task.updated, Text::clone(&task.id)));
    assert_eq!(running(cursor(&all[0]), 10).await, all[1..]);
    assert_eq!(running(cursor(&all[1]), 10).await, []);
}

async fn open(subject: &StoreUnderTest, task: TaskRecord) {
    // Each task needs its own message.
    let message = format!("opens {}", task.id);
    let opened = subject.tasks.insert(task, &message).await;
    assert_eq!(
        opened.expect("a task can be inserted"),
        TaskInsertOutcome::New
    );
}

pub(super) fn task(id: &str, user: &str, context: &str, state: &str, time: u64) -> TaskRecord {
    TaskRecord {
        id: id.into(),
        user: UserId::from(user),
        context: context.into(),
        state: state.into(),
        is_running: true,
        updated: Timestamp(time),
        body: "{}".into(),
        revision: 1,
        attempts: 0,
    }
}

async fn list(subject: &StoreUnderTest, query: TaskQuery) -> (Vec<TaskRecord>, Option<u64>) {
    let page = subject.tasks.list(&UserId::from("ann"), query).await;
    let page = page.expect("tasks can be listed");
    (page.tasks, page.total)
}
