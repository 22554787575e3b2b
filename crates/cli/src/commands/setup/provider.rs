//! The provider: given, or chosen from a list.

use super::{address, command, dialog};
use crate::args::SetupArguments;
use crate::screen;
use lango::app::setup::{Connection, ProviderChoice, check_address, provider_choices};
use lango::app::{App, Failure};
use lango_core::is_loopback_host;
use lango_models::OfflineModel;

/// The name of a provider that the user gave only an address for.
const OWN_NAME: &str = "custom";

/// A selected provider.
pub(super) struct Selection {
    pub provider: String,
    /// Its address if it is not the usual one.
    pub address: Option<String>,
    /// Whether the user gave only the address, so that lango chose the name.
    is_unnamed: bool,
}

impl Selection {
    fn named(provider: String, address: Option<String>) -> Self {
        Self {
            provider,
            address,
            is_unnamed: false,
        }
    }

    fn at(app: &App, address: String) -> Self {
        Self {
            provider: own_name(app, &address),
            address: Some(address),
            is_unnamed: true,
        }
    }

    /// Replaces the address. The name stays if the user gave it.
    pub(super) fn change_address(&mut self, app: &App, address: String) {
        if self.is_unnamed {
            *self = Self::at(app, address);
        } else {
            self.address = Some(address);
        }
    }

    pub(super) fn connection(&self, app: &App) -> Result<Connection, Failure> {
        let connection = Connection::new(app, &self.provider, self.address.as_deref())?;
        Ok(if self.is_unnamed {
            connection.with_address_as_label()
        } else {
            connection
        })
    }
}

/// What the user wants to use.
pub(super) enum ProviderAnswer {
    Provider(Selection),
    /// The built-in rules.
    Demo,
    Quit,
}

/// Returns the provider that is given, or asks for it.
pub(super) async fn choose(
    app: &App,
    arguments: &SetupArguments,
) -> Result<ProviderAnswer, Failure> {
    let address = arguments.base_url.clone();
    let of_model = arguments
        .model
        .as_deref()
        .and_then(|name| name.split_once('/'));
    let given = arguments.provider.clone();
    let given = given.or_else(|| of_model.map(|(provider, _)| provider.to_owned()));
    if let Some(provider) = given {
        return Ok(ProviderAnswer::Provider(Selection::named(
            provider, address,
        )));
    }
    if let Some(address) = address {
        return Ok(ProviderAnswer::Provider(Selection::at(app, address)));
    }
    let choices = provider_choices(app).await;
    let default = default(app, &choices);
    if let Some(default) = default.filter(|_| arguments.yes) {
        let selection = Selection::named(default.id.clone(), None);
        return Ok(ProviderAnswer::Provider(selection));
    }
    if arguments.yes || !dialog::can_ask() {
        let message = "no provider is given, and lango cannot ask for one";
        let next = match default {
            Some(ready) => command(arguments, &format!(" --provider {} --yes", ready.id)),
            None => {
                let given = SetupArguments {
                    provider: Some("anthropic".to_owned()),
                    key_stdin: true,
                    ..arguments.clone()
                };
                command(&given, " --yes")
            }
        };
        return Err(Failure::usage(message).next(next));
    }
    ask(app, &choices, default).await
}

async fn ask(
    app: &App,
    choices: &[ProviderChoice],
    default: Option<&ProviderChoice>,
) -> Result<ProviderAnswer, Failure> {
    screen::say("Which provider?");
    let names = choices.iter().map(|choice| choice.name.chars().count());
    let width = names.max().unwrap_or_default();
    for (number, choice) in choices.iter().enumerate() {
        let (name, note) = (&choice.name, &choice.note);
        screen::say(&format!("{:>3}  {name:<width$}  {note}", number + 1));
    }
    let last = choices.len() + 1;
    screen::say(&format!("{last:>3}  another OpenAI-compatible URL"));
    let mut entries: Vec<String> = choices.iter().map(|choice| choice.id.clone()).collect();
    screen::say(&format!("{:>3}  use the demo (no model)", last + 1));
    entries.extend([OTHER, DEMO].map(str::to_owned));
    let default = default.map(|choice| choice.id.as_str());
    loop {
        let Some(chosen) = dialog::choose("number, name or URL", &entries, default).await? else {
            return Ok(ProviderAnswer::Quit);
        };
        let answer = answer(app, choices, chosen).await?;
        // Addresses are checked later, with a question of their own.
        let selection = match &answer {
            ProviderAnswer::Provider(selection) if !selection.is_unnamed => selection,
            _ => return Ok(answer),
        };
        let Err(failure) = selection.connection(app) else {
            return Ok(answer);
        };
        let known = choices.iter().map(|choice| choice.id.as_str());
        let hint = dialog::did_you_mean(&selection.provider, known);
        screen::say(&match &*hint {
            "" => failure.to_string(),
            hint => format!("there is no provider `{}`{hint}", selection.provider),
        });
    }
}

/// Returns what the user has chosen.
async fn answer(
    app: &App,
    choices: &[ProviderChoice],
    chosen: String,
) -> Result<ProviderAnswer, Failure> {
    if [DEMO, "demo", "offline", OfflineModel::NAME].contains(&chosen.as_str()) {
        return Ok(ProviderAnswer::Demo);
    }
    // No name of a provider contains these signs.
    if chosen.contains([':', '/', '.']) || is_loopback_host(&chosen) {
        return Ok(ProviderAnswer::Provider(Selection::at(app, chosen)));
    }
    if chosen != OTHER {
        let lower = chosen.to_lowercase();
        let named = choices
            .iter()
            .find(|choice| choice.name.to_lowercase() == lower);
        let id = named.map_or(lower, |choice| choice.id.clone());
        return Ok(ProviderAnswer::Provider(Selection::named(id, None)));
    }
    let address = address::ask().await?;
    Ok(address.map_or(ProviderAnswer::Quit, |address| {
        ProviderAnswer::Provider(Selection::at(app, address))
    }))
}

/// The last entries of the list. No provider can have these names.
const OTHER: &str = "another URL";
const DEMO: &str = "no model";

/// Returns the provider of the current model if it is ready, else the first one that is.
fn default<'a>(app: &App, choices: &'a [ProviderChoice]) -> Option<&'a ProviderChoice> {
    let current = app.loaded.settings.agent.model.as_deref();
    let current = current.and_then(|name| name.split('/').next());
    let is_current = |choice: &&ProviderChoice| current == Some(choice.id.as_str());
    let mut ready: Vec<&ProviderChoice> = choices.iter().filter(|choice| choice.is_ready).collect();
    ready.sort_by_key(|choice| !is_current(choice));
    ready.first().copied()
}

/// Returns the name of the provider with this address, or a free name for a new one.
fn own_name(app: &App, address: &str) -> String {
    let providers = &app.loaded.settings.providers;
    let address = check_address(address).unwrap_or_default();
    let same = providers.iter().find(|(_, config)| {
        let known = config.base_url.as_deref();
        known.is_some_and(|known| check_address(known).is_ok_and(|known| known == address))
    });
    if let Some((id, _)) = same {
        return id.clone();
    }
    let numbered = (2..).map(|number| format!("{OWN_NAME}{number}"));
    let mut names = std::iter::once(OWN_NAME.to_owned()).chain(numbered);
    let free = names.find(|name| !providers.contains_key(name));
    free.unwrap_or_else(|| OWN_NAME.to_owned())
}
