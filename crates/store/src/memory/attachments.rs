//! Attachments of sessions in memory. No session is ever deleted here, so bytes that an event refers to stay.

use super::MemoryStore;
use crate::attachments::{LIFETIME_OF_PUT, admit};
use lango_core::{AttachmentStore, BoxFuture, Event, StoreError, Text, UserId};
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Bytes by user and digest.
pub(super) type Attachments = BTreeMap<(UserId, Text), StoredBytes>;

#[derive(Debug)]
pub(super) struct StoredBytes {
    bytes: Arc<[u8]>,
    last_put: Instant,
    is_referenced: bool,
}

impl AttachmentStore for MemoryStore {
    fn put<'a>(
        &'a self,
        user: &'a UserId,
        bytes: Arc<[u8]>,
    ) -> BoxFuture<'a, Result<Text, StoreError>> {
        Box::pin(async move {
            let digest = admit(user, &bytes).await?;
            let mut attachments = self.attachments();
            attachments.retain(|_, stored| {
                stored.is_referenced || stored.last_put.elapsed() < LIFETIME_OF_PUT
            });
            let stored = attachments.entry((user.clone(), digest.clone()));
            let stored = stored.or_insert_with(|| StoredBytes {
                bytes,
                last_put: Instant::now(),
                is_referenced: false,
            });
            stored.last_put = Instant::now();
            Ok(digest)
        })
    }

    fn read<'a>(
        &'a self,
        user: &'a UserId,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        Box::pin(async move {
            let key = (user.clone(), Text::from(digest));
            let attachments = self.attachments();
            Ok(attachments
                .get(&key)
                .map(|stored| Arc::clone(&stored.bytes)))
        })
    }
}

impl MemoryStore {
    fn attachments(&self) -> MutexGuard<'_, Attachments> {
        self.attachments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the bytes that events of a user refer to.
    pub(super) fn refer(&self, user: &UserId, events: &[Event]) {
        let digests = events.iter().flat_map(|event| event.body.attachments());
        for attachment in digests {
            let key = (user.clone(), attachment.digest.clone());
            if let Some(stored) = self.attachments().get_mut(&key) {
                stored.is_referenced = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::{Attachment, EventBody, NewSession, SessionId, SessionStore, Timestamp};
    use lango_testkit::session_store_contract::Sketch;

    #[tokio::test(start_paused = true)]
    async fn bytes_that_no_event_refers_to_are_deleted_after_a_day() {
        let store = MemoryStore::new();
        let (user, id) = (UserId::from("local"), SessionId::from("s_1"));
        let session = NewSession {
            id: id.clone(),
            user: user.clone(),
            created: Timestamp(1),
        };
        store.create(session).await.unwrap();
        let lost = store.put(&user, Arc::from(*b"lost")).await.unwrap();
        let kept = store.put(&user, Arc::from(*b"kept")).await.unwrap();
        let mut batch = Sketch::of(&id).ask("see").batch().to_vec();
        if let EventBody::UserMessage { attachments, .. } = &mut batch[0].body {
            attachments.push(Attachment {
                name: "kept.txt".into(),
                media_type: "text/plain".into(),
                digest: kept.clone(),
                size: 4,
            });
        }
        store.append(batch.into()).await.unwrap();
        tokio::time::advance(LIFETIME_OF_PUT).await;
        store.put(&user, Arc::from(*b"new")).await.unwrap();
        let read = |digest: Text| {
            let (store, user) = (&store, &user);
            async move { AttachmentStore::read(store, user, &digest).await.unwrap() }
        };
        assert_eq!(read(lost).await, None);
        assert_eq!(read(kept).await.as_deref(), Some(&b"kept"[..]));
    }
}
