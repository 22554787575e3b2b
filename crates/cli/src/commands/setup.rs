//! `lango setup`: writes a minimal configuration file that selects a model, after a test call to it.

use crate::args::SetupArguments;
use crate::exit::Exit;
use crate::screen;
use lango::app::App;
use lango::app::Failure;
use lango::app::model_offers::{ModelOffer, ProviderOffers, list_offers};
use lango::app::setup;
use lango_core::text::sanitize;
use std::io::IsTerminal;
use std::time::Instant;

/// How many models of a provider are listed; `lango models` lists all.
const MAX_OFFERS: usize = 20;

/// Runs the command.
pub(super) async fn setup(config: Vec<String>, arguments: SetupArguments) -> Result<Exit, Failure> {
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
    setup::test_call(&*model).await?;
    screen::say(&format!(
        "✓ {} answered in {:.1} s",
        model.name(),
        started.elapsed().as_secs_f64()
    ));
    let text = setup::file_text(&app, model.name());
    setup::write(&path, &text)?;
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
