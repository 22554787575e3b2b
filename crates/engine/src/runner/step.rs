//! Performs one step: calls a model, a tool through the gate, or a remote agent.

use super::draft::Draft;
use super::spans::{record_result, step_span};
use super::turn_context::TurnContext;
use super::{RunnerError, RunnerParts, TurnUpdate, UpdateSender, attachments, remote};
use crate::turn::{ModelStep, StepKey, Turn, TurnInput, TurnStep};
use futures_util::StreamExt;
use lango_core::{
    CallId, Caller, Inspection, ModelError, ModelEvent, ModelFault, ModelRequest, OutputSink, Text,
    Trust, UserId,
};
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::Instrument;

/// Performs a step. Takes what it needs from the turn immediately, so the future does not borrow the turn. If the lease
/// is lost, the future calls nothing and stays pending, because this process must not continue the turn. Files are
/// stored before the result that refers to them; if that fails, the step has no result, as after a crash.
pub(super) fn perform<'a>(
    parts: &'a RunnerParts,
    turn: &Turn,
    user: &UserId,
    step: TurnStep,
    context: TurnContext<'a>,
    progress: Option<mpsc::Sender<TurnInput>>,
) -> impl Future<Output = Result<(StepKey, TurnInput), RunnerError>> + Send + use<'a> {
    let request = match &step {
        TurnStep::CallModel(step) => Some(turn.request(step)),
        TurnStep::CallTool(_) | TurnStep::CallRemote(_) => None,
    };
    let session = turn.session().clone();
    let turn_id = turn.id().clone();
    let user = user.clone();
    let time = Duration::from_millis(turn.limits().tool_ms);
    let span = step_span(parts, &step);
    let performed = async move {
        let key = step.key();
        if !context.lease.is_valid() {
            std::future::pending::<()>().await;
        }
        let input = match (step, request) {
            (TurnStep::CallModel(step), Some(mut request)) => {
                attachments::load_contents(parts, &user, &mut request).await?;
                let caller = Caller {
                    user: user.clone(),
                    session,
                    turn: turn_id,
                    agent: step.agent.clone(),
                    call: CallId::new(""),
                    trust: Trust::Untrusted,
                    inspection: Inspection::default(),
                    output: OutputSink::default(),
                };
                call_model(parts, step, request, caller, context.updates).await
            }
            (TurnStep::CallModel(step), None) => incomplete_reply(parts, step),
            (TurnStep::CallTool(step), _) => {
                let caller = Caller {
                    user: user.clone(),
                    session,
                    turn: turn_id,
                    agent: step.agent.clone(),
                    call: step.call.clone(),
                    trust: step.trust,
                    inspection: step.inspection.clone(),
                    output: OutputSink::default(),
                };
                let mode = parts.mode.get();
                let run = parts.gate.run(&step, caller, time, mode, context.updates);
                let mut result = run.await;
                let files = std::mem::take(&mut result.files);
                let (attachments, omitted) = attachments::store_files(parts, &user, files).await?;
                result.add_lines(&omitted);
                TurnInput::ToolReturned {
                    step,
                    status: result.status,
                    output: result.output,
                    trust: result.trust,
                    attachments,
                }
            }
            (TurnStep::CallRemote(step), _) => {
                let call = remote::remote_request(parts, &user, &session, &turn_id, &step).await;
                let draft = Draft::new(
                    step.frame.clone(),
                    step.agent.clone(),
                    context.updates,
                    step.shows_draft,
                );
                let time = remote::timeout(parts, &step.agent).unwrap_or(time);
                let input = remote::call(parts, step, call, time, draft, progress).await;
                remote::store_files(parts, &user, input).await?
            }
        };
        record_result(&input);
        Ok((key, input))
    };
    performed.instrument(span)
}

async fn call_model(
    parts: &RunnerParts,
    step: ModelStep,
    request: ModelRequest,
    caller: Caller,
    updates: &UpdateSender,
) -> TurnInput {
    let mut draft = Draft::new(
        step.frame.clone(),
        step.agent.clone(),
        updates,
        step.shows_draft,
    );
    let model = parts.model_of(&step.agent);
    let name: Text = model.name().into();
    updates.send(TurnUpdate::ModelStarted {
        frame: step.frame.clone(),
        agent: step.agent.clone(),
        model: Text::clone(&name),
    });
    let mut stream = model.call(request);
    while let Some(item) = stream.next().await {
        match item {
            Ok(ModelEvent::Text(text)) => {
                updates.send_model_progress(&step.frame, text.len());
                draft.push(&text);
            }
            Ok(ModelEvent::Progress { bytes }) => updates.send_model_progress(&step.frame, bytes),
            Ok(ModelEvent::Retrying { reason }) => draft.retry(&reason),
            Ok(ModelEvent::Reply(reply)) => {
                if !reply.calls.is_empty() {
                    draft.withdraw();
                }
                let inspections = parts.gate.inspect(caller, &reply.calls).await;
                return TurnInput::ModelReplied {
                    step,
                    reply,
                    model: name,
                    inspections,
                };
            }
            Err(error) => {
                draft.withdraw();
                return TurnInput::ModelFailed { step, error };
            }
        }
    }
    draft.withdraw();
    incomplete_reply(parts, step)
}

fn incomplete_reply(parts: &RunnerParts, step: ModelStep) -> TurnInput {
    let error = ModelError {
        model: parts.model_of(&step.agent).name().into(),
        fault: ModelFault::Incomplete,
        address: None,
    };
    TurnInput::ModelFailed { step, error }
}
