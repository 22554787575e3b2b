//! The line that closes a question: how it was answered.

use crate::screen::one_line;
use lango_core::{AnswerSource, ApprovalAnswer};

/// Describes how a request was answered, if that is worth a line.
pub(super) fn answer_line(
    answer: &ApprovalAnswer,
    by: &AnswerSource,
    call: &str,
) -> Option<String> {
    let named = |what: &str| match call {
        "" => format!("└ {what}"),
        call => format!("└ {what}: {call}"),
    };
    match by {
        AnswerSource::Grant { grant } => Some(format!("  allowed by grant {grant}")),
        AnswerSource::Person => Some(match answer {
            ApprovalAnswer::Once => named("allowed once"),
            ApprovalAnswer::Session { pattern } => {
                format!("└ allowed in this session: {}", one_line(pattern, 100))
            }
            ApprovalAnswer::Always { pattern, .. } => {
                format!(
                    "└ always allowed in this folder: {}",
                    one_line(pattern, 100)
                )
            }
            ApprovalAnswer::No { .. } => named("denied"),
            other => format!("└ answered: {}", other.name()),
        }),
        AnswerSource::Unattended | AnswerSource::TurnEnded | AnswerSource::Expired => None,
    }
}
