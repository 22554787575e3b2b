//! Performing one step: asking a model, running a tool through the gate, asking a remote agent.

use super::draft::Draft;
use super::{RunnerError, RunnerParts, Shown, attachments, remote};
use crate::turn::{Input, ModelStep, Step, StepKey, Turn};
use futures_util::StreamExt;
use lango_core::{
    BoxLease, CallId, Caller, Inspection, ModelError, ModelEvent, ModelFault, ModelRequest, Trust,
    UserId,
};
use std::time::Duration;
use tokio::sync::mpsc;

/// What a step needs is taken from the turn now; the future does not hold on to it. Nothing is begun outside once the
/// session is lost to somebody else: the turn ends then, here. Files are stored before the result that refers to them; if
/// that fails, the step has no result, as if the process had ended.
pub(super) fn perform<'a>(
    parts: &'a RunnerParts,
    turn: &Turn,
    user: &UserId,
    lease: &'a BoxLease,
    step: Step,
    shown: mpsc::Sender<Shown>,
    news: Option<mpsc::Sender<Input>>,
) -> impl Future<Output = Result<(StepKey, Input), RunnerError>> + Send + use<'a> {
    let request = match &step {
        Step::CallModel(step) => Some(turn.request(step)),
        Step::CallTool(_) | Step::CallRemote(_) => None,
    };
    let session = turn.session().clone();
    let turn_id = turn.id().clone();
    let user = user.clone();
    let time = Duration::from_millis(turn.limits().tool_ms);
    async move {
        let key = step.key();
        if !lease.is_valid() {
            std::future::pending::<()>().await;
        }
        let input = match (step, request) {
            (Step::CallModel(step), Some(mut request)) => {
                attachments::load_contents(parts, &user, &mut request).await?;
                let caller = Caller {
                    user: user.clone(),
                    session,
                    turn: turn_id,
                    agent: step.agent.clone(),
                    call: CallId::new(""),
                    trust: Trust::Untrusted,
                    inspection: Inspection::default(),
                };
                call_model(parts, step, request, caller, shown).await
            }
            (Step::CallModel(step), None) => cut_off(parts, step),
            (Step::CallTool(step), _) => {
                let caller = Caller {
                    user: user.clone(),
                    session,
                    turn: turn_id,
                    agent: step.agent.clone(),
                    call: step.call.clone(),
                    trust: step.trust,
                    inspection: step.inspection.clone(),
                };
                let result = parts.gate.run(&step, &caller, time).await;
                Input::ToolReturned {
                    step,
                    status: result.status,
                    output: result.output,
                    trust: result.trust,
                    attachments: attachments::store_files(parts, &user, result.files).await?,
                }
            }
            (Step::CallRemote(step), _) => {
                let call = remote::what_to_ask(parts, &user, &session, &turn_id, &step).await;
                let draft = Draft::new(step.agent.clone(), shown, step.shown);
                let time = remote::timeout(parts, &step.agent).unwrap_or(time);
                let input = remote::call(parts, step, call, time, draft, news).await;
                remote::store_files(parts, &user, input).await?
            }
        };
        Ok((key, input))
    }
}

async fn call_model(
    parts: &RunnerParts,
    step: ModelStep,
    request: ModelRequest,
    caller: Caller,
    shown: mpsc::Sender<Shown>,
) -> Input {
    let mut draft = Draft::new(step.agent.clone(), shown, step.shown);
    let model = parts.model_of(&step.agent);
    let mut stream = model.call(request);
    while let Some(item) = stream.next().await {
        match item {
            Ok(ModelEvent::Text(text)) => draft.push(&text).await,
            Ok(ModelEvent::Retrying { reason }) => draft.retry(&reason).await,
            Ok(ModelEvent::Reply(reply)) => {
                if !reply.calls.is_empty() {
                    draft.withdraw().await;
                }
                let inspections = parts.gate.inspect(caller, &reply.calls).await;
                return Input::ModelReplied {
                    step,
                    reply,
                    model: model.name().into(),
                    inspections,
                };
            }
            Err(error) => {
                draft.withdraw().await;
                return Input::ModelFailed { step, error };
            }
        }
    }
    draft.withdraw().await;
    cut_off(parts, step)
}

fn cut_off(parts: &RunnerParts, step: ModelStep) -> Input {
    let error = ModelError {
        model: parts.model_of(&step.agent).name().into(),
        fault: ModelFault::CutOff,
    };
    Input::ModelFailed { step, error }
}
