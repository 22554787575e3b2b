//! `lango setup`: connects a model. Asks for the provider, its key and the model, tests the model with one short call,
//! and only then stores the key and changes the configuration file.

mod address;
mod dialog;
mod key;
mod model;
mod provider;

use crate::args::SetupArguments;
use crate::exit::Exit;
use crate::screen;
use key::{KeyAnswer, read_piped_key};
use lango::app::setup::{
    ConnectError, Connection, NewKey, Removal, demo_warning, precedence_warnings, unset_model,
};
use lango::app::signals::StartSignals;
use lango::app::vault::PromptMode;
use lango::app::{App, Failure};
use lango_core::RecordSelection;
use lango_models::OfflineModel;
use lango_vault::OpenVault;
use model::ModelAnswer;
use std::time::{Duration, Instant};

/// How long the test call may take. A server on this machine may first load the model.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// What to write.
enum Plan {
    Connect(Box<Tested>),
    /// Select no model.
    Demo,
}

/// A connection that was tested.
struct Tested {
    connection: Connection,
    /// The model without its provider.
    model: String,
    /// The new key, if one was given.
    key: Option<NewKey>,
    /// The vault that gets the new key, if there is one.
    vault: Option<OpenVault>,
}

/// Runs the command.
pub(super) async fn setup(config: Vec<String>, arguments: SetupArguments) -> Result<Exit, Failure> {
    let mut signals = StartSignals::listen()?;
    let app = signals.guard(App::load(config)).await?;
    if let Some(provider) = &arguments.remove {
        return remove(&app, provider, &mut signals).await;
    }
    let tested = match signals.guard(connect(&app, &arguments)).await? {
        None => {
            screen::say("nothing was written");
            return Ok(Exit::Ok);
        }
        Some(Plan::Demo) => return select_demo(&app).await,
        Some(Plan::Connect(tested)) => *tested,
    };
    // Signals wait: everything is known, and what belongs together is written together.
    let Tested {
        connection,
        model,
        key,
        vault,
    } = tested;
    let provider = connection.provider.clone();
    let is_in_file = key.is_some() && vault.is_none();
    let key = key.map(|key| key.value);
    let lines = connection.write(&app, &model, key, vault.as_ref()).await?;
    for line in lines {
        screen::print(&line)?;
    }
    for warning in precedence_warnings(&app, &provider, is_in_file) {
        screen::say(&format!("warning: {warning}"));
    }
    screen::say("try it: lango run \"what files are here?\", or `lango` for a chat");
    Ok(Exit::Ok)
}

/// Unsets the model, so that the demo answers unless lango finds a model.
async fn select_demo(app: &App) -> Result<Exit, Failure> {
    screen::print(&unset_model(app)?)?;
    if let Some(warning) = demo_warning(app).await {
        screen::say(&format!("warning: {warning}"));
    }
    screen::say("try it: lango run \"what files are here?\", or `lango` for a chat");
    Ok(Exit::Ok)
}

/// Removes the key and the settings of a provider.
async fn remove(app: &App, provider: &str, signals: &mut StartSignals) -> Result<Exit, Failure> {
    let removal = Removal::new(app, provider)?;
    let vault = if removal.needs_vault() {
        signals.guard(open_vault(app)).await?
    } else {
        None
    };
    for line in removal.write(app, vault.as_ref()).await? {
        screen::print(&line)?;
    }
    Ok(Exit::Ok)
}

/// Asks for everything that is not given, and tests it. Returns `None` if the user quits.
async fn connect(app: &App, arguments: &SetupArguments) -> Result<Option<Plan>, Failure> {
    let names_demo = arguments.model.as_deref().is_some_and(|name| {
        let is_alone = arguments.provider.is_none();
        is_alone && ["offline", OfflineModel::NAME].contains(&name)
    });
    if names_demo || arguments.provider.as_deref() == Some("offline") {
        let message = "the demo needs no setup: its rules answer whenever no model is connected";
        return Err(Failure::usage(message).next("lango -c agent.model=offline"));
    }
    let mut piped = read_piped_key(arguments)?;
    let mut selection = match provider::choose(app, arguments).await? {
        provider::ProviderAnswer::Provider(selection) => selection,
        provider::ProviderAnswer::Demo => return Ok(Some(Plan::Demo)),
        provider::ProviderAnswer::Quit => return Ok(None),
    };
    let mut earlier: Option<(Connection, Option<NewKey>)> = None;
    loop {
        let Some(connection) = address::connect(app, arguments, &mut selection).await? else {
            return Ok(None);
        };
        // A key that was typed for another server is not sent to this one.
        let same = earlier.filter(|(other, _)| connection.has_origin_of(app, other));
        let given = match (same, piped.take()) {
            (Some((_, Some(key))), _) | (None, Some(key)) => KeyAnswer::New(key),
            (Some((_, None)), _) => KeyAnswer::Existing,
            (None, None) => key::ask(app, arguments, &connection).await?,
        };
        let key = match given {
            KeyAnswer::New(key) => Some(key),
            KeyAnswer::Existing => None,
            KeyAnswer::Quit => return Ok(None),
        };
        match connect_to(app, arguments, connection, key).await? {
            Attempt::Tested(tested) => return Ok(Some(Plan::Connect(Box::new(tested)))),
            Attempt::OtherAddress {
                address,
                connection,
                key,
            } => {
                selection.change_address(app, address);
                earlier = Some((connection, key));
            }
            Attempt::Quit => return Ok(None),
        }
    }
}

/// The result of trying to connect to one address.
enum Attempt {
    Tested(Tested),
    OtherAddress {
        address: String,
        /// What was tried, with its key.
        connection: Connection,
        key: Option<NewKey>,
    },
    Quit,
}

/// Asks for the model of this provider, and tests it. A key that is refused can be typed again.
async fn connect_to(
    app: &App,
    arguments: &SetupArguments,
    connection: Connection,
    mut key: Option<NewKey>,
) -> Result<Attempt, Failure> {
    // Opened before the test, so that nothing asks or is refused after it.
    let vault = match &key {
        Some(_) => open_vault(app).await?,
        None => None,
    };
    if key.is_some() && vault.is_none() {
        app.credentials.stored().check()?;
    }
    let mut tries = 1;
    loop {
        let error = match test(app, arguments, &connection, key.as_ref()).await {
            Ok(ModelAnswer::Model(model)) => {
                return Ok(Attempt::Tested(Tested {
                    connection,
                    model,
                    key,
                    vault,
                }));
            }
            Ok(ModelAnswer::Address(address)) => {
                return Ok(Attempt::OtherAddress {
                    address,
                    connection,
                    key,
                });
            }
            Ok(ModelAnswer::Quit) => return Ok(Attempt::Quit),
            Err(error) => error,
        };
        let can_type = key.is_some() && !arguments.key_stdin && tries < key::MAX_TRIES;
        if !can_type || !error.is_bad_key() {
            return Err(error.into());
        }
        tries += 1;
        screen::say(&Failure::from(error).message());
        key = key::type_key(&connection, None).await?;
        if key.is_none() {
            return Ok(Attempt::Quit);
        }
    }
}

/// Asks for the model, and makes one call to it.
async fn test(
    app: &App,
    arguments: &SetupArguments,
    connection: &Connection,
    key: Option<&NewKey>,
) -> Result<ModelAnswer, ConnectError> {
    let model = match model::choose(app, arguments, connection, key).await? {
        ModelAnswer::Model(model) => model,
        other => return Ok(other),
    };
    let name = format!("{}/{model}", connection.provider);
    if dialog::can_ask() {
        screen::say(&format!("calling {name}…"));
    }
    let started = Instant::now();
    connection.test(app, &model, key, TEST_TIMEOUT).await?;
    let seconds = started.elapsed().as_secs_f64();
    screen::say(&format!("✓ {name} answered in {seconds:.1} s"));
    Ok(ModelAnswer::Model(model))
}

/// Opens the vault, if there is one.
async fn open_vault(app: &App) -> Result<Option<OpenVault>, Failure> {
    let access = app.vault.clone().without_echo_between_prompts();
    match access.read(RecordSelection::None).await? {
        Some(_) => access.open(PromptMode::Allowed).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the command that asks nothing: what was given, and these flags. A key on standard input must be given again.
fn command(arguments: &SetupArguments, more: &str) -> String {
    let given = [
        ("provider", &arguments.provider),
        ("base-url", &arguments.base_url),
        ("model", &arguments.model),
    ];
    let given = given.into_iter().filter_map(|(flag, value)| {
        let value = value.as_ref()?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@".contains(letter);
        Some(if value.chars().all(is_plain) {
            format!(" --{flag} {value}")
        } else {
            format!(" --{flag} '{}'", value.replace('\'', "'\\''"))
        })
    });
    let (key, input) = if arguments.key_stdin {
        (" --key-stdin", " < FILE_WITH_THE_KEY")
    } else {
        ("", "")
    };
    format!("lango setup{}{key}{more}{input}", given.collect::<String>())
}
