//! Spans and events of a turn for logs: ids, names and numbers, never texts or arguments.

use super::{RunnerParts, TurnEnd};
use crate::turn::{TurnInput, TurnStep};
use lango_core::{SessionId, TurnId};
use tracing::field::{Empty, debug};
use tracing::{Span, info, info_span, warn};

/// Creates the span of a turn, from its first to its last stored event, or to the next approval.
pub(super) fn turn_span(session: &SessionId, turn: &TurnId) -> Span {
    info_span!("turn", %session, %turn)
}

/// Creates the span of a step.
pub(super) fn step_span(parts: &RunnerParts, step: &TurnStep) -> Span {
    match step {
        TurnStep::CallModel(step) => info_span!(
            "model_call",
            agent = %step.agent,
            model = parts.model_of(&step.agent).name(),
            input_tokens = Empty,
            cached_tokens = Empty,
            output_tokens = Empty,
        ),
        TurnStep::CallTool(step) => info_span!(
            "tool_call",
            agent = %step.agent,
            tool = %step.tool,
            call = %step.call,
            status = Empty,
        ),
        TurnStep::CallRemote(step) => {
            info_span!("remote_call", agent = %step.agent, call = %step.frame, status = Empty)
        }
    }
}

/// Adds the result of a step to its span, which must be the current one.
pub(super) fn record_result(input: &TurnInput) {
    let span = Span::current();
    match input {
        TurnInput::ModelReplied { reply, .. } => {
            span.record("input_tokens", reply.usage.input_tokens);
            span.record("cached_tokens", reply.usage.cached_tokens);
            span.record("output_tokens", reply.usage.output_tokens);
        }
        TurnInput::ModelFailed { error, .. } => {
            warn!(fault = error.fault.name(), "the model call failed");
        }
        TurnInput::ToolReturned { status, .. } => {
            span.record("status", debug(status));
        }
        TurnInput::RemoteReturned { result, .. } => match result {
            Ok(_) => drop(span.record("status", "Ok")),
            Err(error) => warn!(is_unknown = error.is_unknown, "the remote call failed"),
        },
        _ => {}
    }
}

/// Logs how a turn ended. The turn's span must be the current one.
pub(super) fn log_end(end: &TurnEnd) {
    match end {
        TurnEnd::Finished(report) => info!(
            outcome = report.outcome.name(),
            model_calls = report.model_calls,
            tool_calls = report.tool_calls,
            rounds = report.rounds,
            input_tokens = report.usage.input_tokens,
            output_tokens = report.usage.output_tokens,
            cost_micros = report.cost_micros,
            "the turn finished"
        ),
        TurnEnd::Waiting(waiting) => {
            info!(approvals = waiting.len(), "the turn waits for approval");
        }
    }
}
