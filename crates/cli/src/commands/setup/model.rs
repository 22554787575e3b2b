//! The model: given, or chosen from the provider's list.

use super::command;
use super::dialog::{self, Answer};
use crate::args::SetupArguments;
use crate::screen;
use lango::app::model_offers::{ModelOffer, ProviderOffers};
use lango::app::setup::{ConnectError, Connection, NewKey};
use lango::app::{App, Failure};

/// How many models are listed; `lango models` lists all.
const MAX_OFFERS: usize = 20;

/// The question if the provider lists no models.
const UNLISTED: &str =
    "another address, such as http://127.0.0.1:8000/v1, or the name of a model (Enter quits): ";

/// Which model to use.
pub(super) enum ModelAnswer {
    /// The model without its provider.
    Model(String),
    /// No model: the user gave another address.
    Address(String),
    Quit,
}

/// Asks for the model, unless it is given.
pub(super) async fn choose(
    app: &App,
    arguments: &SetupArguments,
    connection: &Connection,
    key: Option<&NewKey>,
) -> Result<ModelAnswer, ConnectError> {
    let provider = &connection.provider;
    let model = |name: &str| ModelAnswer::Model(without_provider(provider, name).to_owned());
    if let Some(name) = &arguments.model {
        return Ok(model(name));
    }
    let list = connection.list_models(app, key).await?;
    let problem = list.error.as_ref().filter(|_| list.models.is_empty());
    let problem = problem.map(|reason| {
        let label = &connection.label;
        let address = connection.own_address().filter(|address| address != label);
        let address = address.map(|address| format!(" ({address})"));
        let address = address.unwrap_or_default();
        format!("`{label}`{address} does not list its models: {reason}; is the path right? Many end with /v1")
    });
    let offers = ProviderOffers::new(provider.clone(), list).offers;
    let default = default(app, provider, &offers);
    if let Some(default) = default.as_deref().filter(|_| arguments.yes) {
        return Ok(model(default));
    }
    if !dialog::can_ask() {
        let label = &connection.label;
        let mut message =
            format!("no model of `{label}` is given, and there is no terminal to ask");
        if let Some(problem) = problem {
            message = format!("{message}; {problem}");
        }
        let model = default.as_deref().unwrap_or("NAME");
        let given = SetupArguments {
            provider: Some(provider.clone()),
            ..arguments.clone()
        };
        let next = command(&given, &format!(" --model {provider}/{model}"));
        return Err(Failure::usage(message).next(next).into());
    }
    if let Some(problem) = problem {
        screen::say(&problem);
        return Ok(match dialog::ask(UNLISTED).await? {
            Answer::Text(text) if text.contains("://") => ModelAnswer::Address(text),
            Answer::Text(name) => model(&name),
            Answer::Empty | Answer::Quit => ModelAnswer::Quit,
        });
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
    let mut unlisted = None;
    loop {
        let question = "model, by number or name";
        let Some(name) = dialog::choose(question, &names, default.as_deref()).await? else {
            return Ok(ModelAnswer::Quit);
        };
        let name = without_provider(provider, &name);
        let mut listed = offers
            .iter()
            .map(|offer| without_provider(provider, &offer.name));
        // A provider may have more models than it lists.
        if listed.clone().any(|listed| listed == name) || unlisted.as_deref() == Some(name) {
            return Ok(model(name));
        }
        let hint = dialog::did_you_mean(name, &mut listed);
        screen::say(&format!(
            "{} does not list `{name}`{hint}\n  type it again to use it anyway",
            connection.label
        ));
        unlisted = Some(name.to_owned());
    }
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
