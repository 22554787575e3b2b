//! Names and ids. Each has its own type, so a session id cannot be passed as a turn id.
//!
//! All of them are shared strings; cloning one copies no text.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the text without checking it.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

text_id!(
    /// The id of a user, who owns sessions; `local` on the command line.
    UserId
);
text_id!(
    /// The id of a session: a conversation of a user with lango.
    SessionId
);
text_id!(
    /// The id of a turn: one user input and everything up to its answer.
    TurnId
);
text_id!(
    /// The id of a model's function call, unique within its turn.
    CallId
);
text_id!(
    /// The id of a request to the user about a call.
    ApprovalId
);
text_id!(
    /// The registered name of an agent, or `user`. Every event has one as its author.
    AgentName
);
text_id!(
    /// The registered name of a tool.
    ToolName
);
text_id!(
    /// The id of a frame, which is one agent's run inside a turn. It is the id of the `delegate` call that opened the
    /// frame, or empty for the root agent.
    FrameId
);

impl UserId {
    /// The maximum length of a user id in bytes.
    pub const MAX_BYTES: usize = 4096;

    /// Whether stores accept the id: it is not blank, not too long, and contains no control characters, which stores
    /// use to mark hidden sessions.
    pub fn is_valid(&self) -> bool {
        !self.0.trim().is_empty()
            && self.0.len() <= Self::MAX_BYTES
            && !self.0.contains(char::is_control)
    }
}

impl AgentName {
    /// The author of the user's messages.
    pub const USER: &'static str = "user";

    /// Returns [`Self::USER`] as a name.
    pub fn user() -> Self {
        Self::from(Self::USER)
    }
}

impl FrameId {
    /// Returns the id of the root agent's frame.
    pub fn root() -> Self {
        Self::from("")
    }

    /// Whether this is the frame of the root agent.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&CallId> for FrameId {
    fn from(call: &CallId) -> Self {
        Self(Arc::clone(&call.0))
    }
}

impl From<&FrameId> for CallId {
    /// Returns the `delegate` call that a sub-agent's frame answers.
    fn from(frame: &FrameId) -> Self {
        Self(Arc::clone(&frame.0))
    }
}
