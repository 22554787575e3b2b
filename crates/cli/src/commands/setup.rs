//! `lango setup`: writes a minimal configuration file that selects a model, after a test call to it.

use crate::args::SetupArguments;
use crate::exit::Exit;
use crate::screen;
use lango::app::App;
use lango::app::Failure;
use lango::app::model_offers::{ModelOffer, ProviderOffers, list_offers};
use lango_config::Origin;
use lango_core::text::sanitize;
use lango_core::{Message, Model, ModelEvent, ModelRequest};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

/// How many models of a provider are listed; `lango models` lists all.
const MAX_OFFERS: usize = 20;

/// Runs the command.
pub async fn setup(config: Vec<String>, arguments: SetupArguments) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    let path = app.loaded.paths.user_file.clone();
    if path.exists() && !arguments.force {
        let message = format!("`{}` already exists", path.display());
        return Err(Failure::usage(message).next("edit it, or use --force to overwrite it"));
    }
    let name = match arguments.model {
        Some(name) => name,
        None => ask(&app).await?,
    };
    let model = app.model_selector().model_by_name(&name)?;
    let started = Instant::now();
    test_call(&*model).await?;
    screen::say(&format!(
        "✓ {} answered in {:.1} s",
        model.name(),
        started.elapsed().as_secs_f64()
    ));
    let text = file_text(&app, model.name());
    write(&path, &text)?;
    screen::print(&format!("wrote {}", path.display()))?;
    Ok(Exit::Ok)
}

/// Lists the available models and asks which one to use.
async fn ask(app: &App) -> Result<String, Failure> {
    let providers = list_offers(&app.model_selector()).await;
    let choice = app.model_selector().choose().await?;
    let current = choice.model.name();
    let offers = providers.iter().flat_map(|provider| {
        let (default, others) = provider.offers.iter().partition(|offer| offer.is_default);
        let all = Vec::into_iter(default).chain(Vec::into_iter(others));
        all.take(MAX_OFFERS)
    });
    let offers: Vec<&ModelOffer> = offers.collect();
    let note = |name: &str| {
        let offer = offers.iter().find(|offer| offer.name == name);
        offer.map(|offer| offer.note()).unwrap_or_default()
    };
    let names = offers.iter().map(|offer| offer.name.as_str());
    let names = names.filter(|name| *name != current);
    let names: Vec<&str> = std::iter::once(current).chain(names).collect();
    if !std::io::stdin().is_terminal() {
        return Err(
            Failure::usage("there is no terminal to ask which model to use")
                .next(format!("lango setup --model {}", names[0])),
        );
    }
    for (number, name) in names.iter().enumerate() {
        let line = format!("{:>3}  {}  {}", number + 1, sanitize(name), note(name));
        screen::print(line.trim_end())?;
    }
    let origins = providers.iter().filter_map(ProviderOffers::origin);
    origins.for_each(|origin| screen::say(&origin));
    screen::write_all("number or provider/model [1]: ")?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let line = line.trim();
    Ok(match line.parse::<usize>() {
        Ok(number) if (1..=names.len()).contains(&number) => names[number - 1].to_owned(),
        _ if line.is_empty() => names[0].to_owned(),
        _ => line.to_owned(),
    })
}

/// Makes one short call to the model.
async fn test_call(model: &dyn Model) -> Result<(), Failure> {
    use futures_util::StreamExt;
    let request = ModelRequest {
        instruction: "Answer with one word.".into(),
        messages: vec![Message::user("hello")],
        ..ModelRequest::default()
    };
    let mut stream = model.call(request);
    while let Some(event) = stream.next().await {
        match event {
            Ok(ModelEvent::Reply(_)) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                return Err(Failure::config(error.to_string())
                    .next("nothing was written; fix the problem and run `lango setup` again"));
            }
        }
    }
    Err(Failure::config("the model sent no reply").next("nothing was written"))
}

/// Returns the content of the file: the model, and the settings of its provider from the command line.
fn file_text(app: &App, model: &str) -> String {
    let provider = model.split('/').next().unwrap_or_default();
    let mut text = format!("agent.model = {}\n", toml::Value::from(model));
    for value in &app.loaded.values {
        let is_of_provider = value.name.starts_with(&format!("providers.{provider}."));
        if is_of_provider
            && value.origin == Origin::Flag
            && let Some(rendered) = value.render()
        {
            text.push_str(&format!("{} = {rendered}\n", value.name));
        }
    }
    text
}

/// Writes a temporary file and renames it, so that no reader sees a partial file.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let failed = |error: std::io::Error| {
        Failure::config(format!("cannot write `{}`: {error}", path.display()))
            .next("set LANGO_HOME to a writable folder")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let temporary = path.with_extension("toml.new");
    let mut file = std::fs::File::create(&temporary).map_err(failed)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(failed)?;
    std::fs::rename(&temporary, path).map_err(failed)
}
