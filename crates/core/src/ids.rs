//! Names and identifiers, one type each, so that a session can never be passed for a turn.
//!
//! All of them are shared strings: cloning one is a counter, not a copy.

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
            /// Takes the text as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
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
    /// Whose session it is; `local` on the command line.
    UserId
);
text_id!(
    /// A conversation.
    SessionId
);
text_id!(
    /// One input of the user and all that follows until the answer.
    TurnId
);
text_id!(
    /// One call of a function by a model, unique within its turn.
    CallId
);
text_id!(
    /// One question to a person whether a call may run.
    ApprovalId
);
text_id!(
    /// The registered name of an agent, or `user`: every event has one as its author.
    AgentName
);
text_id!(
    /// The registered name of a tool.
    ToolName
);
text_id!(
    /// One agent's run inside a turn: the id of the delegate call that opened it, empty for the root's.
    FrameId
);

impl UserId {
    /// The longest name, in bytes.
    pub const LONGEST: usize = 4096;

    /// Whether a store keeps sessions of this user: the name says something, has an end, and has no control characters,
    /// with which stores mark what nobody is to see.
    pub fn can_be_kept(&self) -> bool {
        !self.0.trim().is_empty()
            && self.0.len() <= Self::LONGEST
            && !self.0.contains(char::is_control)
    }
}

impl AgentName {
    /// The author of what the person says.
    pub const USER: &'static str = "user";

    /// The author of what the person says, as a name.
    pub fn user() -> Self {
        Self::from(Self::USER)
    }
}

impl FrameId {
    /// The frame of the root agent.
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
    /// The delegate call that a sub-agent's frame answers.
    fn from(frame: &FrameId) -> Self {
        Self(Arc::clone(&frame.0))
    }
}
