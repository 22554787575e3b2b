//! `lango models`: lists the available models with their prices, and the one in use.

use crate::exit::Exit;
use crate::screen;
use lango::app::App;
use lango::app::Failure;
use lango::app::model_offers::{ProviderOffers, list_offers};
use lango::app::model_table::{Line, lines, rows};

/// Runs the command.
pub(super) async fn models(config: Vec<String>, as_json: bool) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    let providers = list_offers(&app.model_selector()).await;
    // Chosen from the lists that were just read, so that the choice agrees with the output.
    let choice = app.model_selector().choose().await;
    let chosen = choice.as_ref().ok().map(|choice| choice.model.name());
    let lines = lines(&providers, chosen);
    if as_json {
        screen::print(&screen::json(
            &rows(lines, chosen),
            screen::Layout::Indented,
        )?)?;
    } else {
        for Line { model, note, .. } in &lines {
            let mark = if Some(model.as_str()) == chosen {
                "●"
            } else {
                " "
            };
            screen::print(&format!("{mark} {model}  {note}"))?;
        }
    }
    for origin in providers.iter().filter_map(ProviderOffers::origin) {
        screen::say(&origin);
    }
    let choice = choice?;
    screen::say(&format!(
        "in use: {} ({})",
        choice.model.name(),
        choice.reason
    ));
    Ok(Exit::Ok)
}
