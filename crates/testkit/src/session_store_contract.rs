//! What every store of sessions has to do, as one suite over any implementation.
//!
//! A case is an async function over a fresh [`Subject`]. The macro of the same name turns all of them into tests; it
//! wants an async function that opens an empty store:
//!
//! ```text
//! lango_testkit::session_store_contract!(open_memory_store);
//! ```
//!
//! What only one implementation can promise (files, reopening, damage) is tested beside that implementation.

mod approvals;
mod attachments;
mod catalog;
mod history;
mod leases;
mod log;
mod remote;
mod samples;
mod task_log;
mod tasks;

pub use approvals::*;
pub use attachments::*;
pub use catalog::*;
pub use history::*;
pub use leases::*;
pub use log::*;
pub use remote::*;
pub use samples::{Sketch, attachment, every_kind_of_event};
pub use task_log::*;
pub use tasks::*;

use lango_core::{
    AttachmentStore, Event, NewSession, Page, SessionCatalog, SessionId, SessionStore, TaskLog,
    TaskStore, Timestamp, UserId,
};
use std::any::Any;
use std::sync::Arc;

/// An empty store under test.
pub struct Subject {
    /// Its sessions.
    pub store: Arc<dyn SessionStore>,
    /// The list of them.
    pub catalog: Arc<dyn SessionCatalog>,
    /// Tasks from outside.
    pub tasks: Arc<dyn TaskStore>,
    /// Tasks that are stored with events.
    pub task_log: Arc<dyn TaskLog>,
    /// Files that events refer to.
    pub attachments: Arc<dyn AttachmentStore>,
    /// What has to live as long, such as a temporary folder. Dropped last.
    pub keep: Box<dyn Any + Send + Sync>,
}

impl Subject {
    /// A store with all its faces.
    pub fn new<S>(store: S, keep: impl Any + Send + Sync) -> Self
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
            keep: Box::new(keep),
        }
    }

    /// A new session of the user `local`.
    pub async fn session(&self, id: &str) -> SessionId {
        self.session_of("local", id).await
    }

    /// A new session of this user, made at the time 1000.
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
            .expect("a session can be made");
        id
    }

    /// All events of a session.
    pub async fn log(&self, session: &SessionId) -> Vec<Event> {
        let page = Page {
            from: 1,
            limit: usize::MAX,
        };
        self.store
            .read(session, page)
            .await
            .expect("a log can be read")
    }
}

/// Turns every case of the contract into a test. Takes an async function that opens an empty store as a [`Subject`].
#[macro_export]
macro_rules! session_store_contract {
    ($open:path) => {
        $crate::session_store_contract! { $open =>
            a_new_session_is_empty
            a_session_id_can_be_taken_once
            a_user_whose_name_hides_sessions_gets_none
            a_session_that_is_not_there_is_not_found
            every_kind_of_event_reads_back_as_it_was_written
            words_of_any_kind_and_length_read_back_as_they_were_written
            a_page_begins_and_ends_where_it_is_told
            an_append_anywhere_but_at_the_end_is_a_conflict
            a_batch_is_stored_whole_or_not_at_all
            an_empty_batch_changes_nothing
            of_two_appends_to_the_same_place_one_wins
            appends_to_fifty_sessions_at_once_all_arrive
            a05_consecutive_messages_of_different_authors_are_never_merged
            a07_an_author_that_is_in_no_tree_is_kept
            the_history_moves_in_blocks
            an_unfinished_turn_is_named_and_not_shown
            an_unfinished_turn_that_is_finished_later_is_shown
            a_turn_that_ended_without_a_word_has_no_answer
            the_answer_of_a_sub_agent_carries_its_task
            the_answer_of_a_remote_agent_carries_its_task
            the_answer_of_the_root_carries_no_task
            the_events_of_one_turn_are_found_by_its_id
            the_session_used_last_is_listed_first
            a_list_is_no_longer_than_asked
            a_user_sees_no_session_of_another
            a_session_is_found_by_the_beginning_of_its_id
            a_session_is_called_by_the_first_thing_that_was_said
            sessions_are_listed_page_by_page
            sessions_are_found_by_status_and_text
            a_session_can_be_renamed_by_its_user
            usage_is_summed_by_day_agent_and_model
            the_history_of_an_earlier_turn_is_what_it_was_shown
            a_request_waits_until_it_is_answered
            an_answer_for_longer_holds_in_its_session_or_its_folder
            a_grant_that_is_taken_back_holds_no_more
            nobody_sees_or_uses_the_approvals_of_another
            a_conversation_with_a_remote_agent_stands_where_its_last_event_left_it
            a_session_is_held_by_one_at_a_time
            those_who_wait_hold_a_session_in_the_order_of_coming
            one_more_than_may_wait_is_refused
            the_holder_of_a_session_appends_to_it
            turns_without_an_outcome_are_found
            a_task_is_kept_whole_and_for_its_user_alone
            a_task_that_was_overtaken_is_not_written_over
            a_message_opens_one_task
            a_running_task_can_be_asked_to_be_cancelled
            tasks_are_listed_page_by_page_the_latest_first
            tasks_are_found_by_conversation_state_and_time
            tasks_that_somebody_was_at_work_on_are_found
            a_task_is_inserted_with_the_first_events_of_its_turn
            a_task_that_was_inserted_alone_gets_its_first_events
            events_that_do_not_follow_the_log_leave_no_task
            a_task_is_replaced_with_the_last_events_of_its_turn
            an_attachment_reads_back_as_it_was_put
            bytes_that_are_put_again_have_the_same_digest
            nobody_reads_an_attachment_of_another
            an_attachment_that_is_too_large_is_refused
            every_event_with_attachments_reads_back_as_it_was_written
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
