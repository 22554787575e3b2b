//! Marks the turns and tasks that were in flight when a database was backed up. They may have continued in the original
//! database, so resuming them could repeat effects. Before a server resumes a marked turn or task, it asks the user.
//!
//! The mark of a turn is an event in its log. The mark of a task, whose turn may not have started, is in the metadata
//! of its message.

use a2a::{Message, Role, Task};
use lango_core::{
    AgentName, BusyPolicy, Event, EventBody, FrameId, SessionCatalog, SessionStore, StoreError,
    TaskStore, Timestamp, TurnFault, UnfinishedTurn,
};
use serde_json::json;
use std::sync::Arc;

/// The metadata key that marks a message.
const MARK: &str = "lango/restored";

/// How many turns or tasks to read at a time.
const PAGE: usize = 64;

/// The numbers of turns and tasks that were in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InFlight {
    /// Unfinished turns, including those with pending approvals.
    pub turns: u64,
    /// Unfinished tasks of callers.
    pub tasks: u64,
}

/// The parts of a restored database.
pub struct RestoredStore<'a> {
    pub sessions: &'a dyn SessionStore,
    pub catalog: &'a dyn SessionCatalog,
    pub tasks: &'a dyn TaskStore,
    /// The agent that becomes the author of the marks.
    pub root: &'a AgentName,
}

impl RestoredStore<'_> {
    /// Marks every unfinished turn and task that is not marked yet. Fails with [`StoreError::Busy`] if a process is
    /// running a turn.
    pub async fn mark_in_flight(&self, now: Timestamp) -> Result<InFlight, StoreError> {
        Ok(InFlight {
            turns: self.mark_turns(now).await?,
            tasks: self.mark_tasks().await?,
        })
    }

    async fn mark_turns(&self, now: Timestamp) -> Result<u64, StoreError> {
        let (mut marked, mut after) = (0, None);
        loop {
            let page = self.catalog.unfinished(after.as_ref(), PAGE).await?;
            for turn in &page {
                self.mark_turn(turn, now).await?;
                marked += 1;
            }
            match page.last() {
                Some(last) => after = Some(last.session.clone()),
                None => return Ok(marked),
            }
        }
    }

    async fn mark_turn(&self, turn: &UnfinishedTurn, now: Timestamp) -> Result<(), StoreError> {
        let session = &turn.session;
        let _lease = self.sessions.acquire(session, BusyPolicy::Refuse).await?;
        let events = self.sessions.turn_events(session, &turn.turn).await?;
        let is_over =
            |event: &Event| matches!(event.body, EventBody::TurnFinished { .. }) || is_mark(event);
        let Some(last) = events.last().filter(|last| !is_over(last)) else {
            return Ok(());
        };
        let event = Event {
            seq: last.seq + 1,
            session: session.clone(),
            turn: turn.turn.clone(),
            frame: FrameId::root(),
            author: self.root.clone(),
            time: now,
            body: EventBody::TurnCorrected {
                fault: TurnFault::Restored,
                call: None,
                detail: "the database was restored from a backup that was made in the middle of the turn"
                    .into(),
                context_tokens: None,
            },
        };
        self.sessions.append(Arc::from([event])).await
    }

    async fn mark_tasks(&self) -> Result<u64, StoreError> {
        let (mut marked, mut after) = (0, None);
        loop {
            let page = self.tasks.running(after, PAGE).await?;
            for running in &page {
                let Some(mut record) = self.tasks.get(&running.user, &running.id).await? else {
                    continue;
                };
                // Leave a record that cannot be parsed unchanged; the server reports it.
                if let Ok(mut task) = serde_json::from_str::<Task>(&record.body)
                    && mark_message(&mut task)
                {
                    record.body = json!(task).to_string().into();
                    record.revision += 1;
                    self.tasks.put(record).await?;
                }
                marked += 1;
            }
            match page.last() {
                Some(last) => after = Some((last.updated, Arc::clone(&last.id))),
                None => return Ok(marked),
            }
        }
    }
}

fn is_mark(event: &Event) -> bool {
    matches!(
        event.body,
        EventBody::TurnCorrected {
            fault: TurnFault::Restored,
            ..
        }
    )
}

/// Marks the user's last message in a task. Returns false if it was already marked, or if there is none.
fn mark_message(task: &mut Task) -> bool {
    let mut history = task.history.iter_mut().flatten().rev();
    let Some(message) = history.find(|message| message.role == Role::User) else {
        return false;
    };
    let metadata = message.metadata.get_or_insert_default();
    metadata.insert(MARK.to_owned(), json!(true)).is_none()
}

/// Returns whether the task of this message was in flight when the database was backed up.
pub(crate) fn is_marked(message: &Message) -> bool {
    let metadata = message.metadata.as_ref();
    metadata.is_some_and(|metadata| metadata.contains_key(MARK))
}
