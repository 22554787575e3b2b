//! Cases about tasks from outside.

use super::Subject;
use futures_util::future::join;
use lango_core::{Opened, Put, RunningTask, TaskQuery, TaskRecord, Text, Timestamp, UserId};

/// It reads back as it was kept, changed as a whole, and only for its user.
pub async fn a_task_is_kept_whole_and_for_its_user_alone(subject: Subject) {
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
    assert_eq!(tasks.put(later.clone()).await.ok(), Some(Put::Stored));
    assert_eq!(
        tasks.get(&ann, "t_1").await.ok().flatten(),
        Some(later.clone())
    );
    let taken = TaskRecord {
        user: bob.clone(),
        revision: 3,
        ..first
    };
    tasks.put(taken).await.expect_err("it is another user's");
    assert_eq!(tasks.get(&ann, "t_1").await.ok().flatten(), Some(later));
    assert_eq!(tasks.get(&bob, "t_1").await.ok().flatten(), None);
}

/// Of two who write on what they have read, the second is told so.
pub async fn a_task_that_was_overtaken_is_not_written_over(subject: Subject) {
    let ann = UserId::from("ann");
    let first = task("t_1", "ann", "c_1", "WORKING", 5);
    open(&subject, first.clone()).await;
    let written = |revision: u64, state: &str| TaskRecord {
        state: state.into(),
        revision,
        ..first.clone()
    };
    let put = |task: TaskRecord| async { subject.tasks.put(task).await.ok() };
    assert_eq!(put(written(2, "COMPLETED")).await, Some(Put::Stored));
    for revision in [1, 2, 4] {
        assert_eq!(
            put(written(revision, "WORKING")).await,
            Some(Put::Overtaken)
        );
    }
    let kept = subject.tasks.get(&ann, "t_1").await.ok().flatten();
    assert_eq!(kept, Some(written(2, "COMPLETED")));
    let gone = TaskRecord {
        id: "t_2".into(),
        ..written(2, "WORKING")
    };
    assert_eq!(put(gone).await, Some(Put::Overtaken));
    assert_eq!(subject.tasks.get(&ann, "t_2").await.ok().flatten(), None);
}

/// Whoever sends it again, and however often at the same time.
pub async fn a_message_opens_one_task(subject: Subject) {
    let opened = |id: &str, user: &str, message: &'static str| {
        let task = task(id, user, "c_1", "SUBMITTED", 1);
        let tasks = &subject.tasks;
        async move { tasks.insert(task, message).await.expect("it can be asked") }
    };
    let (one, two) = join(opened("t_1", "ann", "m"), opened("t_2", "ann", "m")).await;
    let known = match (one, two) {
        (Opened::New, Opened::Known(id)) => (id, "t_1"),
        (Opened::Known(id), Opened::New) => (id, "t_2"),
        both => panic!("one message opened {both:?}"),
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
    assert_eq!(again, Opened::Known(known.0));
    assert_eq!(opened("t_4", "bob", "m").await, Opened::New);
    assert_eq!(opened("t_5", "ann", "n").await, Opened::New);
    let running = subject.tasks.running(None, 10).await;
    assert_eq!(running.map(|tasks| tasks.len()).ok(), Some(3));
}

/// What is to be cancelled is known to all until the task is at rest.
pub async fn a_running_task_can_be_asked_to_be_cancelled(subject: Subject) {
    let (ann, bob) = (UserId::from("ann"), UserId::from("bob"));
    let mut at_rest = task("t_0", "ann", "c_1", "COMPLETED", 1);
    at_rest.is_running = false;
    open(&subject, at_rest).await;
    for id in ["t_1", "t_2", "t_3"] {
        open(&subject, task(id, "ann", "c_1", "WORKING", 1)).await;
    }
    let ask = |user: UserId, id: &'static str| {
        let tasks = &subject.tasks;
        async move { tasks.request_cancel(&user, id).await.ok() }
    };
    assert_eq!(ask(ann.clone(), "t_0").await, Some(false));
    assert_eq!(ask(bob, "t_1").await, Some(false));
    assert_eq!(ask(ann.clone(), "t_9").await, Some(false));
    for id in ["t_3", "t_1", "t_1"] {
        assert_eq!(ask(ann.clone(), id).await, Some(true));
    }
    let asked = async |after, limit| {
        let asked = subject.tasks.cancel_requests(after, limit).await;
        asked.expect("they can be read").join(" ")
    };
    assert_eq!(asked(None, 10).await, "t_1 t_3");
    assert_eq!(asked(None, 1).await, "t_1");
    assert_eq!(asked(Some("t_1"), 10).await, "t_3");
    let mut working = task("t_1", "ann", "c_1", "WORKING", 2);
    working.revision = 2;
    subject.tasks.put(working).await.expect("it can be kept");
    assert_eq!(asked(None, 10).await, "t_1 t_3");
    let mut ended = task("t_1", "ann", "c_1", "CANCELED", 3);
    (ended.revision, ended.is_running) = (3, false);
    subject.tasks.put(ended).await.expect("it can be kept");
    assert_eq!(asked(None, 10).await, "t_3");
}

/// The latest change first, page after page, none twice and none left out.
pub async fn tasks_are_listed_page_by_page_the_latest_first(subject: Subject) {
    for number in 0..23_u64 {
        let id = format!("t_{number:02}");
        // Several at one time.
        let kept = task(&id, "ann", "c_1", "WORKING", 100 + number / 3);
        open(&subject, kept).await;
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

/// By conversation, state and time, each alone and together.
pub async fn tasks_are_found_by_conversation_state_and_time(subject: Subject) {
    for (id, context, state, time) in [
        ("t_1", "c_1", "WORKING", 1),
        ("t_2", "c_1", "COMPLETED", 2),
        ("t_3", "c_2", "COMPLETED", 3),
        ("t_4", "c_2", "WORKING", 4),
    ] {
        let kept = task(id, "ann", context, state, time);
        open(&subject, kept).await;
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

/// Whoever starts finds what was left in the middle, of every user.
pub async fn tasks_that_somebody_was_at_work_on_are_found(subject: Subject) {
    let mut ended = task("t_1", "ann", "c_1", "COMPLETED", 1);
    ended.is_running = false;
    let kept = [
        ended,
        task("t_2", "ann", "c_1", "WORKING", 2),
        task("t_3", "bob", "c_2", "WORKING", 3),
    ];
    for kept in kept {
        open(&subject, kept).await;
    }
    let running = |after, limit| {
        let tasks = &subject.tasks;
        async move {
            let running = tasks.running(after, limit).await;
            running.expect("they can be found")
        }
    };
    let all = running(None, 10).await;
    let ids: Vec<&str> = all.iter().map(|task| &*task.id).collect();
    assert_eq!(ids, ["t_2", "t_3"]);
    let (user, context) = (all[1].user.as_str(), &*all[1].context);
    assert_eq!((user, context), ("bob", "c_2"));
    assert_eq!((all[1].updated, all[1].revision), (Timestamp(3), 1));
    assert_eq!(running(None, 1).await, all[..1]);
    let place = |task: &RunningTask| Some((task.updated, Text::clone(&task.id)));
    assert_eq!(running(place(&all[0]), 10).await, all[1..]);
    assert_eq!(running(place(&all[1]), 10).await, []);
}

async fn open(subject: &Subject, task: TaskRecord) {
    // Each by a message of its own.
    let message = format!("opens {}", task.id);
    let opened = subject.tasks.insert(task, &message).await;
    assert_eq!(opened.expect("it can be kept"), Opened::New);
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

async fn list(subject: &Subject, query: TaskQuery) -> (Vec<TaskRecord>, Option<u64>) {
    let page = subject.tasks.list(&UserId::from("ann"), query).await;
    let page = page.expect("tasks can be listed");
    (page.tasks, page.total)
}
