//! The memories of a user over all their sessions, for the user's own commands: list, search and forget.

use super::forget::{ForgetOutcome, ForgetTarget};
use super::search::MemoryQuery;
use super::{Memory, owner};
use lango_core::{SessionId, StoreError, Timestamp, Trust, UserId};
use lango_store::{Generation, MemoryId, MemoryRecord, SavedMemory};
use serde::Serialize;

/// Maximum number of memories of each kind that are searched, the newest first.
const MAX_SEARCHED: usize = 5000;

/// A memory as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedMemory {
    /// The id, such as `m_3`.
    pub id: String,
    pub kind: MemoryKind,
    pub created: Timestamp,
    /// The session that it is about; `None` if all sessions see it.
    pub session: Option<SessionId>,
    pub tags: Vec<String>,
    /// The agent, model or rules that wrote it.
    pub by: String,
    pub trust: Trust,
    /// Whether a reflection already contains it.
    pub is_condensed: bool,
    pub text: String,
}

/// How a memory came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// The user asked to save it.
    Saved,
    /// A summary of turns.
    Observation,
    /// A summary of observations or of other reflections.
    Reflection,
}

impl Memory {
    /// Returns the memories of a user that are in effect, newest first: what was saved, and what was observed and is not
    /// condensed yet.
    pub async fn list(&self, user: &UserId, limit: usize) -> Result<Vec<ListedMemory>, StoreError> {
        let mut found = self.all_of(user).await?;
        found.retain(|memory| !memory.is_condensed);
        found.truncate(limit);
        Ok(found)
    }

    /// Returns the memories of a user that contain all words of a text, newest first; `None` if the text has no word.
    pub async fn search(
        &self,
        user: &UserId,
        text: &str,
        limit: usize,
    ) -> Result<Option<Vec<ListedMemory>>, StoreError> {
        let Some(query) = MemoryQuery::new(text) else {
            return Ok(None);
        };
        let mut found = self.all_of(user).await?;
        found.retain(|memory| query.matches(&format!("{} {}", memory.text, memory.tags.join(" "))));
        found.truncate(limit);
        Ok(Some(found))
    }

    /// Whether a user has this memory.
    pub async fn has(&self, user: &UserId, id: MemoryId) -> Result<bool, StoreError> {
        self.rows().has_memory(user, id).await
    }

    /// Returns the memories that [`forget_by_id`](Self::forget_by_id) deletes, newest first.
    pub async fn with_id(
        &self,
        user: &UserId,
        id: MemoryId,
    ) -> Result<Vec<ListedMemory>, StoreError> {
        let session = match id {
            MemoryId::Saved(_) => None,
            _ => self.rows().session_of_memory(user, id).await?,
        };
        let ids = match session {
            None => vec![id],
            Some(session) => {
                let owner = owner(user, &session);
                self.to_forget(&owner, &ForgetTarget::One(id)).await?
            }
        };
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let mut found = self.all_of(user).await?;
        found.retain(|memory| ids.contains(&memory.id));
        Ok(found)
    }

    /// Deletes one memory of a user, with the parts that it was condensed from and every reflection that contains it.
    /// Returns the ids of all deleted memories, which are none if the user has no such memory. `None` if concurrent
    /// changes interfered in every attempt.
    pub async fn forget_by_id(
        &self,
        user: &UserId,
        id: MemoryId,
    ) -> Result<Option<Vec<MemoryId>>, StoreError> {
        if matches!(id, MemoryId::Saved(_)) {
            let existed = self.rows().forget_saved(user, id).await?;
            return Ok(Some(existed.then_some(id).into_iter().collect()));
        }
        match self.rows().session_of_memory(user, id).await? {
            Some(session) => {
                let owner = owner(user, &session);
                match self.forget(&owner, None, &ForgetTarget::One(id)).await? {
                    ForgetOutcome::Done(deleted) => Ok(Some(deleted)),
                    ForgetOutcome::Changed | ForgetOutcome::Stale => Ok(None),
                }
            }
            None => Ok(Some(Vec::new())),
        }
    }

    /// Deletes all memories of a user. The turns up to now are never observed again. Returns how many memories there
    /// were.
    pub async fn forget_everything(&self, user: &UserId) -> Result<u64, StoreError> {
        self.rows().forget_all_memories(user).await
    }

    async fn all_of(&self, user: &UserId) -> Result<Vec<ListedMemory>, StoreError> {
        let recollections = self.rows().recollections_of_user(user, MAX_SEARCHED);
        let recollections = recollections.await?.into_iter();
        let saved = self.rows().saved_memories(user, MAX_SEARCHED).await?;
        let mut all: Vec<ListedMemory> = recollections
            .map(|(session, record)| ListedMemory::of_session(session, record))
            .chain(saved.into_iter().map(ListedMemory::from))
            .collect();
        all.sort_by_key(|memory| std::cmp::Reverse(memory.created));
        Ok(all)
    }
}

impl ListedMemory {
    fn of_session(session: SessionId, record: MemoryRecord) -> Self {
        Self {
            id: record.id.to_string(),
            kind: match record.generation {
                Generation::Observation => MemoryKind::Observation,
                Generation::First | Generation::Second => MemoryKind::Reflection,
            },
            created: record.created,
            session: Some(session),
            tags: Vec::new(),
            by: record.source.name.to_string(),
            trust: record.source.trust,
            is_condensed: record.is_part,
            text: record.text.to_string(),
        }
    }
}

impl From<SavedMemory> for ListedMemory {
    fn from(saved: SavedMemory) -> Self {
        Self {
            id: saved.id.to_string(),
            kind: MemoryKind::Saved,
            created: saved.created,
            session: None,
            tags: saved.tags,
            by: saved.source.name.to_string(),
            trust: saved.source.trust,
            is_condensed: false,
            text: saved.text.to_string(),
        }
    }
}
