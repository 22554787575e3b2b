//! Permission modes: what agents may do without a question, and what they may not do at all.

use crate::Effect;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What the agents of a process may do. The gate enforces it; no model can change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Every call that is not safe needs approval, unless a rule or a grant allows it.
    #[default]
    Ask,
    /// Like [`Ask`](Self::Ask), but changes of ordinary files in the workspace run without a question.
    AcceptEdits,
    /// Only calls without effects run. Nothing else runs, and nothing else is asked for.
    ReadOnly,
    /// Like [`ReadOnly`](Self::ReadOnly), and the models are told to answer with a plan.
    Plan,
}

/// The text is not the name of a permission mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no mode `{name}`; the modes are ask, accept-edits, read-only and plan")]
pub struct UnknownMode {
    name: String,
}

impl PermissionMode {
    /// All modes, from asking to planning.
    pub const ALL: [Self; 4] = [Self::Ask, Self::AcceptEdits, Self::ReadOnly, Self::Plan];

    /// Returns the name on the command line and in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::ReadOnly => "read-only",
            Self::Plan => "plan",
        }
    }

    /// Whether calls that change something can run at all.
    pub fn allows_changes(self) -> bool {
        matches!(self, Self::Ask | Self::AcceptEdits)
    }

    /// Whether a call with this effect can run at all.
    pub fn allows(self, effect: Effect) -> bool {
        effect == Effect::Pure || self.allows_changes()
    }

    /// Whether this is the mode that logs leave out.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PermissionMode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let mut modes = Self::ALL.into_iter();
        modes
            .find(|mode| mode.name() == name)
            .ok_or_else(|| UnknownMode {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_mode_is_parsed_and_stored_as_it_is_shown() {
        for mode in PermissionMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            let stored = serde_json::to_string(&mode).expect("it serializes");
            assert_eq!(stored, format!("\"{mode}\""));
        }
        let unknown = "yolo".parse::<PermissionMode>().expect_err("no mode");
        assert!(unknown.to_string().contains("`yolo`"), "{unknown}");
    }
}
