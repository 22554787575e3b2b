//! The model check of `lango doctor`: one short call.

use super::{CheckStatus, Finding, ModelCheck};
use crate::app::model_selector::ChosenModel;
use crate::app::setup::test_call;
use crate::app::{App, Failure};
use lango_models::OfflineModel;
use std::time::{Duration, Instant};

/// How long the model may take to answer.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Chooses the model as a turn would, and calls it once, without retries and fallbacks.
pub(super) async fn examine(app: &App, check: ModelCheck) -> Finding {
    let (status, detail) = match app.choose_model().await {
        Ok(choice) => examine_choice(app, &choice, check).await,
        Err(failure) => (CheckStatus::Failed, failure.to_string()),
    };
    Finding {
        name: "model",
        status,
        detail,
    }
}

async fn examine_choice(
    app: &App,
    choice: &ChosenModel,
    check: ModelCheck,
) -> (CheckStatus, String) {
    let name = choice.model.name();
    if name == OfflineModel::NAME {
        let detail = format!("{name} (built-in rules, not an AI model), so there is no test call");
        return if choice.is_demo {
            let detail = format!("{detail}; connect a model with `lango setup`");
            (CheckStatus::Absent, detail)
        } else {
            (CheckStatus::Passed, detail)
        };
    }
    let chosen = format!("{name} ({})", choice.reason);
    if check == ModelCheck::Skip {
        return (CheckStatus::Passed, format!("{chosen}; not called"));
    }
    let started = Instant::now();
    match call(app, name).await {
        Ok(()) => {
            let seconds = started.elapsed().as_secs_f64();
            let detail = format!("{chosen}; answered in {seconds:.1} s");
            (CheckStatus::Passed, detail)
        }
        Err(failure) => (CheckStatus::Failed, format!("{chosen}\n{failure}")),
    }
}

async fn call(app: &App, name: &str) -> Result<(), Failure> {
    let model = app.model_selector().model_by_name(name)?;
    test_call(&*model, TIMEOUT).await.map_err(|error| {
        Failure::config(error.to_string())
            .next("fix the cause, or connect another model with `lango setup`; `lango doctor --offline` skips the call")
    })
}
