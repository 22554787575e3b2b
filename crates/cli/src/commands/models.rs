//! `lango models`: which models can be asked, and which one answers now.

use crate::app::App;
use crate::exit::{Exit, Failure};
use crate::markdown::sanitize;
use crate::screen;
use lango_models::{Offline, price_of, prices_date};
use serde_json::json;

/// Runs the command.
pub async fn models(config: Vec<String>, as_json: bool) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    let choice = app.model_choice().choose().await;
    let chooser = app.model_choice();
    let mut rows = vec![(
        Offline::NAME.to_owned(),
        "built-in rules, not an AI model".to_owned(),
    )];
    for id in chooser.reachable().await {
        let listed = match chooser.provider(&id) {
            Ok(provider) => provider.list().await.map_err(|error| error.to_string()),
            Err(failure) => Err(failure.to_string()),
        };
        match listed {
            Ok(models) => rows.extend(
                models
                    .iter()
                    .map(|model| (format!("{id}/{}", sanitize(model)), price(model))),
            ),
            Err(error) => rows.push((format!("{id}/…"), format!("cannot be listed: {error}"))),
        }
    }
    let chosen = choice
        .as_ref()
        .ok()
        .map(|choice| choice.model.name().to_owned());
    if let Some(chosen) = &chosen
        && !rows.iter().any(|(model, _)| model == chosen)
    {
        rows.push((chosen.clone(), "not in its provider's list".to_owned()));
    }
    if as_json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(model, note)| json!({ "model": model, "note": note, "chosen": Some(model) == chosen.as_ref() }))
            .collect();
        screen::print(&screen::json(&json!(rows), screen::Layout::Indented)?)?;
    } else {
        for (model, note) in &rows {
            let mark = if Some(model) == chosen.as_ref() {
                "●"
            } else {
                " "
            };
            screen::print(&format!("{mark} {model}  {note}"))?;
        }
    }
    let choice = choice?;
    screen::say(&format!(
        "answers now: {} ({})",
        choice.model.name(),
        choice.reason
    ));
    Ok(Exit::Ok)
}

fn price(model: &str) -> String {
    match price_of(model) {
        Some(price) => format!(
            "${} in, ${} out for a million tokens ({})",
            price.input,
            price.output,
            prices_date()
        ),
        None => "price unknown".to_owned(),
    }
}
