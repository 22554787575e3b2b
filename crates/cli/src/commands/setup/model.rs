//! The model: given, or chosen from the provider's list.

use super::{command, dialog};
use crate::args::SetupArguments;
use crate::screen;
use lango::app::model_lists::{ListSource, ModelList};
use lango::app::model_offers::{ModelOffer, ProviderOffers};
use lango::app::setup::{ConnectError, Connection, NewKey};
use lango::app::{App, Failure};

/// How many models are listed; `lango models` lists all.
const MAX_OFFERS: usize = 20;

/// Returns the model without its provider; `None` if the user quits.
pub(super) async fn choose(
    app: &App,
    arguments: &SetupArguments,
    connection: &Connection,
    key: Option<&NewKey>,
) -> Result<Option<String>, ConnectError> {
    let provider = &connection.provider;
    if let Some(name) = &arguments.model {
        return Ok(Some(without_provider(provider, name).to_owned()));
    }
    let models = connection.list_models(app, key).await?;
    let list = ModelList {
        models,
        source: ListSource::Live,
        error: None,
    };
    let offers = ProviderOffers::new(provider.clone(), list).offers;
    let default = default(app, provider, &offers);
    if arguments.yes && default.is_some() {
        return Ok(default);
    }
    if !dialog::can_ask() {
        let label = &connection.label;
        let message = format!("no model of `{label}` is given, and there is no terminal to ask");
        let model = default.as_deref().unwrap_or("NAME");
        let given = SetupArguments {
            provider: Some(provider.clone()),
            ..arguments.clone()
        };
        let next = command(&given, &format!(" --model {provider}/{model}"));
        return Err(Failure::usage(message).next(next).into());
    }
    let (first, others): (Vec<&ModelOffer>, Vec<&ModelOffer>) = offers
        .iter()
        .partition(|offer| Some(without_provider(provider, &offer.name)) == default.as_deref());
    let offers: Vec<&ModelOffer> = first.into_iter().chain(others).collect();
    for (number, offer) in offers.iter().take(MAX_OFFERS).enumerate() {
        screen::say(&format!(
            "{:>3}  {}  {}",
            number + 1,
            offer.name,
            offer.note()
        ));
    }
    if let Some(more @ 1..) = offers.len().checked_sub(MAX_OFFERS) {
        screen::say(&format!(
            "     … and {more} more; `lango models` lists them"
        ));
    }
    let names = offers.iter().take(MAX_OFFERS);
    let names: Vec<String> = names.map(|offer| offer.name.clone()).collect();
    let chosen = dialog::choose("model, by number or name", &names, default.as_deref()).await?;
    Ok(chosen.map(|name| without_provider(provider, &name).to_owned()))
}

fn without_provider<'a>(provider: &str, name: &'a str) -> &'a str {
    let model = name.strip_prefix(provider);
    model
        .and_then(|model| model.strip_prefix('/'))
        .unwrap_or(name)
}

/// Returns the model in use if the provider offers it, else lango's preference, else the first one that is not made
/// for embeddings.
fn default(app: &App, provider: &str, offers: &[ModelOffer]) -> Option<String> {
    let current = app.loaded.settings.agent.model.as_deref();
    let in_use = offers.iter().find(|offer| Some(&*offer.name) == current);
    let preferred = || offers.iter().find(|offer| offer.is_default);
    let first = || offers.iter().find(|offer| !offer.name.contains("embed"));
    let offer = in_use.or_else(preferred).or_else(first)?;
    Some(without_provider(provider, &offer.name).to_owned())
}
