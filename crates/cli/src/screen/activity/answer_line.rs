//! The line that closes a question: how it was answered.

use crate::screen::{escape_invisible, frame_mark, one_line};
use crate::terminal::Palette;
use lango_core::{AnswerSource, ApprovalAnswer};

/// How a question left the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionEnd {
    Answered(ApprovalAnswer),
    /// The user stopped the turn.
    Stopped,
    /// The request stays pending.
    Postponed,
    AnsweredElsewhere,
}

/// Describes how a request was answered, if that is worth a line.
pub(super) fn answer_line(
    answer: &ApprovalAnswer,
    by: &AnswerSource,
    call: &str,
    palette: &Palette,
) -> Option<String> {
    match by {
        AnswerSource::Grant { grant } => Some(format!("  allowed by grant {grant}")),
        AnswerSource::Person => {
            let end = QuestionEnd::Answered(answer.clone());
            Some(closing_line(&end, call, palette))
        }
        AnswerSource::Unattended | AnswerSource::TurnEnded | AnswerSource::Expired => None,
    }
}

/// Returns the line that closes the box of a question about this call.
pub(super) fn closing_line(end: &QuestionEnd, call: &str, palette: &Palette) -> String {
    let named = |what: &str| match call {
        "" => what.to_owned(),
        call => format!("{what}: {call}"),
    };
    let granted = |pattern: &str| one_line(&escape_invisible(pattern), 100);
    let text = match end {
        QuestionEnd::Answered(ApprovalAnswer::Once) => named("allowed once"),
        QuestionEnd::Answered(ApprovalAnswer::Session { pattern }) => {
            format!("allowed in this session: {}", granted(pattern))
        }
        QuestionEnd::Answered(ApprovalAnswer::Always { pattern, .. }) => {
            format!("always allowed in this folder: {}", granted(pattern))
        }
        QuestionEnd::Answered(ApprovalAnswer::No { .. }) => named("denied"),
        QuestionEnd::Answered(ApprovalAnswer::Retry) => named("run again"),
        QuestionEnd::Answered(ApprovalAnswer::Skip) => named("skipped"),
        QuestionEnd::Answered(ApprovalAnswer::Happened { text }) => {
            format!("reported: {}", one_line(&escape_invisible(text), 100))
        }
        QuestionEnd::Stopped => named("stopped"),
        QuestionEnd::Postponed => named("not answered yet"),
        QuestionEnd::AnsweredElsewhere => named("answered elsewhere"),
    };
    format!("{} {text}", frame_mark("└", palette))
}
