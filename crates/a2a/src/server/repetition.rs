//! Messages that open a second task.
//!
//! If a task ended before anything ran, the same message opens another attempt. This is a new task, because an ended
//! task cannot be restarted. Its id contains the id of the first attempt, which agents use as the idempotency key of
//! their work. So even if a slow replica runs the first attempt after all, the work is done only once.

use super::message_identity::digest;
use a2a::Message;

/// Separates the id of the first attempt from the unique part of a later one.
const SEPARATOR: char = '~';

/// The second task of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Repetition {
    /// New work, unrelated to the first task.
    NewWork { of: String },
    /// Another attempt at the same work, in the same conversation.
    Attempt {
        of: String,
        context: String,
        /// The stored message. Unlike the one the client sent, it may be marked as restored from a backup.
        message: Box<Message>,
    },
}

impl Repetition {
    /// Creates an id for the new task.
    pub(super) fn task_id(&self) -> String {
        match self {
            Self::NewWork { .. } => a2a::new_task_id(),
            Self::Attempt { of, .. } => {
                format!("{}{SEPARATOR}{}", first_attempt(of), a2a::new_task_id())
            }
        }
    }

    /// Derives the idempotency key of the new task from the key of the previous one.
    pub(super) fn key(&self, previous: &str) -> String {
        let (Self::NewWork { of } | Self::Attempt { of, .. }) = self;
        digest(&format!("{previous}/{of}"))
    }
}

/// Returns the id of the first attempt at a task's message. All attempts share it as the identity of their work.
pub fn first_attempt(task_id: &str) -> &str {
    task_id
        .split_once(SEPARATOR)
        .map_or(task_id, |(first, _)| first)
}

/// Returns whether a task is a later attempt at a message.
pub fn is_further_attempt(task_id: &str) -> bool {
    task_id.contains(SEPARATOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a::Role;

    #[test]
    fn every_further_attempt_names_the_first_one() {
        let first = a2a::new_task_id();
        let mut id = first.clone();
        for _ in 0..3 {
            assert_eq!(is_further_attempt(&id), id != first);
            let attempt = Repetition::Attempt {
                of: id.clone(),
                context: String::new(),
                message: Box::new(Message::new(Role::User, Vec::new())),
            };
            let next = attempt.task_id();
            assert_ne!(next, id);
            id = next;
            assert_eq!(first_attempt(&id), first);
        }
    }
}
