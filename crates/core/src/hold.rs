//! Having a session to oneself: whoever runs a turn holds its session, and nobody else appends to it meanwhile.

use crate::BoxFuture;

/// A session that nobody else appends to while this lives. Dropping it lets the next one in.
pub type Hold = Box<dyn Held>;

/// What is behind a [`Hold`].
///
/// Where holders are on several machines a hold is a lease: it is renewed as long as it lives, and lost when that fails
/// for too long. Whoever lost it appends nothing any more; the store sees to that, whatever the former holder believes.
pub trait Held: Send + Sync {
    /// Whether it is still had, by all that is known here and now. Asked right before something happens outside.
    fn is_had(&self) -> bool;

    /// Resolves when it is lost. Where that cannot happen it never does.
    fn lost(&self) -> BoxFuture<'_, ()>;
}

/// What to do when somebody else holds the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Come back with an error at once.
    Refuse,
    /// Wait in line behind those who came before.
    Wait {
        /// How many may wait; one more is refused.
        most: usize,
    },
}
