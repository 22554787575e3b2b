//! Cases about tasks that are stored in one transaction with events of their turns.

use super::tasks::task;
use super::{LogBuilder, StoreUnderTest};
use lango_core::{
    BoxLease, BusyPolicy, EventBatch, SessionId, StoreError, TaskInsertOutcome, TaskPutOutcome,
    TaskRecord, UserId,
};

/// Both the task and the events are stored. If the message has already created a task, neither is stored.
pub async fn a_task_is_inserted_with_the_first_events_of_its_turn(subject: StoreUnderTest) {
    let (session, _lease) = leased(&subject, "s_1").await;
    let first = LogBuilder::new(&session).ask("hello").batch();
    let new = task("t_1", "ann", "c_1", "SUBMITTED", 1);
    let opened = insert(&subject, &first, &new, "m_1").await;
    assert_eq!(opened.ok(), Some(TaskInsertOutcome::New));
    assert_eq!(subject.log(&session).await, first.to_vec());
    let stored = subject.tasks.get(&UserId::from("ann"), "t_1").await;
    assert_eq!(stored.ok().flatten(), Some(new));

    let (other, _lease) = leased(&subject, "s_2").await;
    let again = LogBuilder::new(&other).ask("hello").batch();
    let second = task("t_2", "ann", "c_2", "SUBMITTED", 1);
    let opened = insert(&subject, &again, &second, "m_1").await;
    assert_eq!(opened.ok(), Some(TaskInsertOutcome::Known("t_1".into())));
    assert_eq!(subject.log(&other).await, []);
    let stored = subject.tasks.get(&UserId::from("ann"), "t_2").await;
    assert_eq!(stored.ok().flatten(), None);
}

/// A task may exist without events if the result of an earlier insert was lost; the retry adds the events.
pub async fn a_task_that_was_inserted_alone_gets_its_first_events(subject: StoreUnderTest) {
    let (session, _lease) = leased(&subject, "s_1").await;
    let new = task("t_1", "ann", "c_1", "SUBMITTED", 1);
    let opened = subject.tasks.insert(new.clone(), "m_1").await;
    assert_eq!(opened.ok(), Some(TaskInsertOutcome::New));
    let first = LogBuilder::new(&session).ask("hello").batch();
    let opened = insert(&subject, &first, &new, "m_1").await;
    assert_eq!(opened.ok(), Some(TaskInsertOutcome::New));
    assert_eq!(subject.log(&session).await, first.to_vec());
}

/// A batch that conflicts with the log stores neither events nor task.
pub async fn events_that_conflict_with_the_log_create_no_task(subject: StoreUnderTest) {
    let (session, _lease) = leased(&subject, "s_1").await;
    let late = LogBuilder::new(&session).at(7).ask("hello").batch();
    let new = task("t_1", "ann", "c_1", "SUBMITTED", 1);
    let error = insert(&subject, &late, &new, "m_1").await;
    assert!(matches!(error, Err(StoreError::Conflict { .. })));
    let stored = subject.tasks.get(&UserId::from("ann"), "t_1").await;
    assert_eq!(stored.ok().flatten(), None);
    let first = LogBuilder::new(&session).ask("hello").batch();
    let opened = insert(&subject, &first, &new, "m_1").await;
    assert_eq!(opened.ok(), Some(TaskInsertOutcome::New));
}

/// The last events are stored even if another writer has replaced the task meanwhile. The session is then free for its
/// next turn.
pub async fn a_task_is_replaced_with_the_last_events_of_its_turn(subject: StoreUnderTest) {
    let ann = UserId::from("ann");
    for (number, is_overtaken) in [(1, false), (2, true)] {
        let (session, lease) = leased(&subject, &format!("s_{number}")).await;
        let new = task(&format!("t_{number}"), "ann", "c_1", "SUBMITTED", 1);
        let first = LogBuilder::new(&session).ask("hello").batch();
        let opened = insert(&subject, &first, &new, &new.id).await;
        assert_eq!(opened.ok(), Some(TaskInsertOutcome::New));
        let ended = TaskRecord {
            state: "COMPLETED".into(),
            is_running: false,
            revision: 2,
            ..new.clone()
        };
        if is_overtaken {
            let put = subject.tasks.put(ended.clone()).await;
            assert_eq!(put.ok(), Some(TaskPutOutcome::Stored));
        }
        let all = LogBuilder::new(&session)
            .exchange("hello", "hello yourself")
            .batch();
        let last: EventBatch = all[1..].into();
        let expected = if is_overtaken {
            TaskPutOutcome::Outdated
        } else {
            TaskPutOutcome::Stored
        };
        let put = subject.task_log.append_last(last, ended.clone()).await;
        assert_eq!(put.ok(), Some(expected));
        assert_eq!(subject.log(&session).await.len(), 3);
        let stored = subject.tasks.get(&ann, &new.id).await;
        assert_eq!(stored.ok().flatten(), Some(ended));
        let head = subject
            .store
            .read_head(&session)
            .await
            .expect("the session opens");
        assert_eq!((head.turns, head.unfinished), (1, None));
        drop(lease);
        let next = subject.store.acquire(&session, BusyPolicy::Refuse).await;
        next.expect("the session is free");
    }
}

async fn leased(subject: &StoreUnderTest, id: &str) -> (SessionId, BoxLease) {
    let session = subject.session(id).await;
    let lease = subject.store.acquire(&session, BusyPolicy::Refuse).await;
    (session, lease.expect("the session is free"))
}

async fn insert(
    subject: &StoreUnderTest,
    events: &EventBatch,
    task: &TaskRecord,
    message: &str,
) -> Result<TaskInsertOutcome, StoreError> {
    let (events, task) = (EventBatch::clone(events), task.clone());
    subject.task_log.append_first(events, task, message).await
}
