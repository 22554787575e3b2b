//! Cases about tasks that are stored together with events of their turns.

use super::tasks::task;
use super::{Sketch, Subject};
use lango_core::{
    Batch, BoxLease, BusyPolicy, Opened, Put, SessionId, StoreError, TaskRecord, UserId,
};

/// Both are there, and a message that opened a task before adds neither.
pub async fn a_task_is_inserted_with_the_first_events_of_its_turn(subject: Subject) {
    let (session, _lease) = leased(&subject, "s_1").await;
    let first = Sketch::of(&session).ask("hello").batch();
    let new = task("t_1", "ann", "c_1", "SUBMITTED", 1);
    let opened = insert(&subject, &first, &new, "m_1").await;
    assert_eq!(opened.ok(), Some(Opened::New));
    assert_eq!(subject.log(&session).await, first.to_vec());
    let stored = subject.tasks.get(&UserId::from("ann"), "t_1").await;
    assert_eq!(stored.ok().flatten(), Some(new));

    let (other, _lease) = leased(&subject, "s_2").await;
    let again = Sketch::of(&other).ask("hello").batch();
    let second = task("t_2", "ann", "c_2", "SUBMITTED", 1);
    let opened = insert(&subject, &again, &second, "m_1").await;
    assert_eq!(opened.ok(), Some(Opened::Known("t_1".into())));
    assert_eq!(subject.log(&other).await, []);
    let stored = subject.tasks.get(&UserId::from("ann"), "t_2").await;
    assert_eq!(stored.ok().flatten(), None);
}

/// An insert whose result was lost is followed by one with the events.
pub async fn a_task_that_was_inserted_alone_gets_its_first_events(subject: Subject) {
    let (session, _lease) = leased(&subject, "s_1").await;
    let new = task("t_1", "ann", "c_1", "SUBMITTED", 1);
    let opened = subject.tasks.insert(new.clone(), "m_1").await;
    assert_eq!(opened.ok(), Some(Opened::New));
    let first = Sketch::of(&session).ask("hello").batch();
    let opened = insert(&subject, &first, &new, "m_1").await;
    assert_eq!(opened.ok(), Some(Opened::New));
    assert_eq!(subject.log(&session).await, first.to_vec());
}

/// Nothing of it is stored.
pub async fn events_that_do_not_follow_the_log_leave_no_task(subject: Subject) {
    let (session, _lease) = leased(&subject, "s_1").await;
    let late = Sketch::of(&session).at(7).ask("hello").batch();
    let new = task("t_1", "ann", "c_1", "SUBMITTED", 1);
    let error = insert(&subject, &late, &new, "m_1").await;
    assert!(matches!(error, Err(StoreError::Conflict { .. })));
    let stored = subject.tasks.get(&UserId::from("ann"), "t_1").await;
    assert_eq!(stored.ok().flatten(), None);
    let first = Sketch::of(&session).ask("hello").batch();
    let opened = insert(&subject, &first, &new, "m_1").await;
    assert_eq!(opened.ok(), Some(Opened::New));
}

/// The end of a turn stands, whoever wrote the task meanwhile, and the session is free for its next turn.
pub async fn a_task_is_replaced_with_the_last_events_of_its_turn(subject: Subject) {
    let ann = UserId::from("ann");
    for (number, is_overtaken) in [(1, false), (2, true)] {
        let (session, lease) = leased(&subject, &format!("s_{number}")).await;
        let new = task(&format!("t_{number}"), "ann", "c_1", "SUBMITTED", 1);
        let first = Sketch::of(&session).ask("hello").batch();
        let opened = insert(&subject, &first, &new, &new.id).await;
        assert_eq!(opened.ok(), Some(Opened::New));
        let ended = TaskRecord {
            state: "COMPLETED".into(),
            is_running: false,
            revision: 2,
            ..new.clone()
        };
        if is_overtaken {
            let put = subject.tasks.put(ended.clone()).await;
            assert_eq!(put.ok(), Some(Put::Stored));
        }
        let all = Sketch::of(&session)
            .exchange("hello", "hello yourself")
            .batch();
        let last: Batch = all[1..].into();
        let expected = if is_overtaken {
            Put::Overtaken
        } else {
            Put::Stored
        };
        let put = subject.task_log.append_last(last, ended.clone()).await;
        assert_eq!(put.ok(), Some(expected));
        assert_eq!(subject.log(&session).await.len(), 3);
        let stored = subject.tasks.get(&ann, &new.id).await;
        assert_eq!(stored.ok().flatten(), Some(ended));
        let head = subject.store.open(&session).await.expect("it opens");
        assert_eq!((head.turns, head.unfinished), (1, None));
        drop(lease);
        let next = subject.store.acquire(&session, BusyPolicy::Refuse).await;
        next.expect("the session is free");
    }
}

async fn leased(subject: &Subject, id: &str) -> (SessionId, BoxLease) {
    let session = subject.session(id).await;
    let lease = subject.store.acquire(&session, BusyPolicy::Refuse).await;
    (session, lease.expect("the session is free"))
}

async fn insert(
    subject: &Subject,
    events: &Batch,
    task: &TaskRecord,
    message: &str,
) -> Result<Opened, StoreError> {
    let (events, task) = (Batch::clone(events), task.clone());
    subject.task_log.append_first(events, task, message).await
}
