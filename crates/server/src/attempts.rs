//! Finds the task of a turn: the latest attempt at its message.

use lango_a2a::server::first_attempt;
use lango_core::{StoreError, TaskQuery, TaskRecord, TaskStore, TurnId, UserId};

/// How many of a conversation's newest tasks to search. Attempts at the message of its last turn are among them.
const MAX_TASKS: usize = 256;

/// Returns the latest attempt at the message of a turn, if the turn has a task.
pub async fn latest_attempt(
    tasks: &dyn TaskStore,
    user: &UserId,
    turn: &TurnId,
) -> Result<Option<TaskRecord>, StoreError> {
    let Some(first) = tasks.get(user, turn.as_str()).await? else {
        return Ok(None);
    };
    if first.is_running {
        return Ok(Some(first));
    }
    let query = TaskQuery {
        context: Some(first.context.clone()),
        limit: MAX_TASKS,
        ..TaskQuery::default()
    };
    let page = tasks.list(user, query).await?;
    let mut attempts = page.tasks.into_iter();
    let latest = attempts.find(|task| first_attempt(&task.id) == turn.as_str());
    Ok(Some(latest.unwrap_or(first)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::Timestamp;
    use lango_store::Store;

    async fn add(store: &Store, id: &str, updated: u64, is_running: bool) {
        let record = TaskRecord {
            id: id.into(),
            user: UserId::from("a2a"),
            context: "c".into(),
            state: "TASK_STATE_X".into(),
            is_running,
            updated: Timestamp(updated),
            body: "{}".into(),
            revision: 1,
            attempts: 0,
        };
        store.insert(record, id).await.unwrap();
    }

    #[tokio::test]
    async fn the_task_of_a_turn_is_its_latest_attempt() {
        let store = Store::in_memory();
        let user = UserId::from("a2a");
        let latest = |turn: &'static str| {
            let (store, user) = (&store, &user);
            async move {
                let task = latest_attempt(store, user, &TurnId::from(turn)).await;
                task.unwrap().map(|task| task.id.to_string())
            }
        };
        assert_eq!(latest("t").await, None);
        add(&store, "t", 1, false).await;
        add(&store, "other", 5, true).await;
        assert_eq!(latest("t").await.as_deref(), Some("t"));
        add(&store, "t~1", 2, false).await;
        add(&store, "t~2", 3, true).await;
        assert_eq!(latest("t").await.as_deref(), Some("t~2"));
        assert_eq!(latest("other").await.as_deref(), Some("other"));
    }
}
