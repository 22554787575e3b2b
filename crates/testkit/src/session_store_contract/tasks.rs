//! Cases about tasks from outside.

use super::Subject;
use lango_core::{TaskQuery, TaskRecord, Text, Timestamp, UserId};

/// It reads back as it was kept, changed as a whole, and only for its user.
pub async fn a_task_is_kept_whole_and_for_its_user_alone(subject: Subject) {
    let (ann, bob) = (UserId::from("ann"), UserId::from("bob"));
    let tasks = &subject.tasks;
    let first = task("t_1", "ann", "c_1", "WORKING", 5);
    tasks.put(first.clone()).await.expect("it can be kept");
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
        ..first.clone()
    };
    tasks.put(later.clone()).await.expect("it can be changed");
    assert_eq!(
        tasks.get(&ann, "t_1").await.ok().flatten(),
        Some(later.clone())
    );
    let taken = TaskRecord {
        user: bob.clone(),
        ..first
    };
    tasks.put(taken).await.expect_err("it is another user's");
    assert_eq!(tasks.get(&ann, "t_1").await.ok().flatten(), Some(later));
    assert_eq!(tasks.get(&bob, "t_1").await.ok().flatten(), None);
}

/// The latest change first, page after page, none twice and none left out.
pub async fn tasks_are_listed_page_by_page_the_latest_first(subject: Subject) {
    for number in 0..23_u64 {
        let id = format!("t_{number:02}");
        // Several at one time.
        let kept = task(&id, "ann", "c_1", "WORKING", 100 + number / 3);
        subject.tasks.put(kept).await.expect("it can be kept");
    }
    let other = task("t_x", "bob", "c_1", "WORKING", 500);
    subject.tasks.put(other).await.expect("it can be kept");
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
        subject.tasks.put(kept).await.expect("it can be kept");
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
        subject.tasks.put(kept).await.expect("it can be kept");
    }
    let running = subject.tasks.running(10).await.expect("they can be found");
    let ids: Vec<&str> = running.iter().map(|task| &*task.id).collect();
    assert_eq!(ids, ["t_2", "t_3"]);
    assert_eq!(
        subject.tasks.running(1).await.map(|found| found.len()).ok(),
        Some(1)
    );
}

fn task(id: &str, user: &str, context: &str, state: &str, time: u64) -> TaskRecord {
    TaskRecord {
        id: id.into(),
        user: UserId::from(user),
        context: context.into(),
        state: state.into(),
        is_running: true,
        updated: Timestamp(time),
        body: "{}".into(),
    }
}

async fn list(subject: &Subject, query: TaskQuery) -> (Vec<TaskRecord>, Option<u64>) {
    let page = subject.tasks.list(&UserId::from("ann"), query).await;
    let page = page.expect("tasks can be listed");
    (page.tasks, page.total)
}
