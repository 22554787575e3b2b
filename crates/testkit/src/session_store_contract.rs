//! The contract of a session store, as one test suite for all implementations.
//!
//! A case is an async function that gets a fresh [`StoreUnderTest`]. The macro `session_store_contract!` turns all
//! cases into tests. Its argument is an async function that opens an empty store:
//!
//! ```text
//! lango_testkit::session_store_contract!(open_memory_store);
//! ```
//!
//! Behaviour of a single implementation (files, reopening, corruption) is tested with that implementation.

mod approvals;
mod attachments;
mod catalog;
mod every_event;
mod history;
mod leases;
mod log;
mod remote;
mod samples;
mod search;
mod task_log;
mod tasks;

pub use approvals::*;
pub use attachments::*;
pub use catalog::*;
pub use every_event::every_kind_of_event;
pub use history::*;
pub use leases::*;
pub use log::*;
pub use remote::*;
pub use samples::{LogBuilder, attachment};
pub use search::*;
pub use task_log::*;
pub use tasks::*;

use lango_core::{
    AttachmentStore, Event, EventRange, NewSession, SessionCatalog, SessionId, SessionStore,
    TaskLog, TaskStore, Timestamp, UserId,
};
use std::any::Any;
use std::sync::Arc;

/// An empty store, through all the traits that it implements.
pub struct StoreUnderTest {
    pub store: Arc<dyn SessionStore>,
    pub catalog: Arc<dyn SessionCatalog>,
    pub tasks: Arc<dyn TaskStore>,
    pub task_log: Arc<dyn TaskLog>,
    pub attachments: Arc<dyn AttachmentStore>,
    /// Resources that the store needs, such as a temporary folder. Dropped last.
    pub resources: Box<dyn Any + Send + Sync>,
}

impl StoreUnderTest {
    /// Wraps an empty store, together with the resources that must live as long as the store.
    pub fn new<S>(store: S, resources: impl Any + Send + Sync) -> Self
    where
        S: SessionStore + SessionCatalog + TaskStore + TaskLog + AttachmentStore + 'static,
    {
        let store = Arc::new(store);
        Self {
            store: store.clone(),
            catalog: store.clone(),
            tasks: store.clone(),
            task_log: store.clone(),
            attachments: store,
            resources: Box::new(resources),
        }
    }

    /// Creates a session of the user `local`.
    pub async fn session(&self, id: &str) -> SessionId {
        self.session_of("local", id).await
    }

    /// Creates a session of this user, at the time 1000.
    pub async fn session_of(&self, user: &str, id: &str) -> SessionId {
        let id = SessionId::from(id);
        let session = NewSession {
            id: id.clone(),
            user: UserId::from(user),
            created: Timestamp(1000),
        };
        self.store
            .create(session)
            .await
            .expect("a session can be created");
        id
    }

    /// Returns all events of a session.
    pub async fn log(&self, session: &SessionId) -> Vec<Event> {
        let page = EventRange {
            from: 1,
            limit: usize::MAX,
        };
        self.store
            .read(session, page)
            .await
            .expect("a log can be read")
    }
}

/// Turns every case of the contract into a test. The argument is an async function that returns a [`StoreUnderTest`].
#[macro_export]
macro_rules! session_store_contract {
    ($open:path) => {
        $crate::session_store_contract! { $open =>
            a_new_session_is_empty
            a_session_id_cannot_be_used_twice
            invalid_user_names_are_refused
            a_missing_session_is_reported_as_not_found
            every_kind_of_event_reads_back_unchanged
            text_of_any_kind_and_length_reads_back_unchanged
            a_page_respects_its_start_and_limit
            an_append_anywhere_but_at_the_end_is_a_conflict
            a_batch_is_stored_whole_or_not_at_all
            an_empty_batch_changes_nothing
            one_of_two_appends_at_the_same_position_wins
            concurrent_appends_to_fifty_sessions_are_all_stored
            a05_consecutive_messages_of_different_authors_are_never_merged
            a07_an_author_outside_the_tree_is_preserved
            the_history_moves_in_blocks
            an_unfinished_turn_is_reported_but_not_in_the_history
            an_unfinished_turn_enters_the_history_once_it_is_finished
            a_turn_that_ended_without_text_has_no_answer
            the_answer_of_a_sub_agent_carries_its_task
            the_answer_of_a_remote_agent_carries_its_task
            the_answer_of_the_root_carries_no_task
            the_events_of_one_turn_are_found_by_its_id
            the_most_recently_used_session_is_listed_first
            a_list_respects_its_limit
            a_user_does_not_see_the_sessions_of_another
            a_session_is_found_by_a_prefix_of_its_id
            a_session_is_titled_by_its_first_message
            sessions_are_listed_in_pages
            sessions_are_found_by_status_and_text
            a_session_can_be_renamed_by_its_user
            sessions_are_found_by_the_folder_of_their_last_turn
            messages_are_found_by_their_text
            a_search_is_limited_to_recent_sessions_and_to_one_user
            a_limited_search_finds_messages_behind_those_with_escapes
            usage_is_summed_by_day_agent_and_model
            the_history_of_a_past_turn_is_what_that_turn_saw
            later_turns_see_what_was_undone
            a_request_waits_until_it_is_answered
            a_grant_applies_to_its_session_or_its_folder
            a_revoked_grant_no_longer_applies
            a_user_neither_sees_nor_uses_the_approvals_of_another
            a_remote_thread_reflects_its_last_event
            a_session_has_one_lease_at_a_time
            waiters_acquire_a_session_in_order_of_arrival
            a_waiter_beyond_the_limit_is_refused
            the_lease_owner_can_append
            unfinished_turns_are_found
            a_task_reads_back_unchanged_and_only_for_its_user
            a_put_with_a_stale_revision_changes_nothing
            a_message_creates_one_task
            cancellation_of_a_running_task_can_be_requested
            tasks_are_listed_in_pages_latest_first
            tasks_are_found_by_context_state_and_time
            running_tasks_of_all_users_are_found
            a_task_is_inserted_with_the_first_events_of_its_turn
            a_task_that_was_inserted_alone_gets_its_first_events
            events_that_conflict_with_the_log_create_no_task
            a_task_is_replaced_with_the_last_events_of_its_turn
            an_attachment_reads_back_unchanged
            storing_the_same_bytes_again_gives_the_same_digest
            a_user_cannot_read_the_attachments_of_another
            an_attachment_that_is_too_large_is_refused
            every_event_with_attachments_reads_back_unchanged
        }
    };
    ($open:path => $($case:ident)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                $crate::session_store_contract::$case($open().await).await;
            }
        )*
    };
}
