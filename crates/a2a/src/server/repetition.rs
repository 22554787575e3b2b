//! Messages that opened a task before and open another one.
//!
//! A further attempt at a message whose task ended before anything ran is a task of its own, because a task that has ended
//! stays as it is. Its id names the first attempt, and agents derive the identity of their work from that: should the first
//! attempt have run after all, on a replica that was slow, the work is not done twice.

use super::message_identity::digest;
use a2a::Message;

/// Separates the id of the first attempt from what is unique to a later one.
const SEPARATOR: char = '~';

/// A task that a message opens although it has opened another one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Repetition {
    /// New work.
    Anew { of: String },
    /// The same work, in the same context: nothing of it was done.
    Attempt {
        of: String,
        context: String,
        /// As it is stored, which may say more than the client sent: that the task is from a backup.
        message: Box<Message>,
    },
}

impl Repetition {
    /// Returns the id of the task.
    pub fn task_id(&self) -> String {
        match self {
            Self::Anew { .. } => a2a::new_task_id(),
            Self::Attempt { of, .. } => {
                format!("{}{SEPARATOR}{}", first_attempt(of), a2a::new_task_id())
            }
        }
    }

    /// Returns the key under which the task is stored, derived from that of the task before.
    pub fn key(&self, previous: &str) -> String {
        let (Self::Anew { of } | Self::Attempt { of, .. }) = self;
        digest(&format!("{previous}/{of}"))
    }
}

/// Returns the id of the first attempt at a task's message: all attempts are the same work.
pub fn first_attempt(task_id: &str) -> &str {
    task_id
        .split_once(SEPARATOR)
        .map_or(task_id, |(first, _)| first)
}

/// Returns whether a task is a further attempt at the message of another one.
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
