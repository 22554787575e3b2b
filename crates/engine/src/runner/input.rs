//! Validation of a turn's input.

use super::{Runner, RunnerError};
use lango_core::UserInput;

/// Fails if the input is empty or too long.
pub(super) fn check_input(question: &UserInput) -> Result<(), RunnerError> {
    let has_files = !question.files.is_empty() || !question.attachments.is_empty();
    if question.text.trim().is_empty() && !has_files {
        return Err(RunnerError::EmptyInput);
    }
    if question.text.len() > Runner::INPUT_BYTES {
        return Err(RunnerError::InputTooLong {
            bytes: question.text.len(),
        });
    }
    Ok(())
}
