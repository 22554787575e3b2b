//! `lango config`: what holds, where it comes from, and whether it works.

use crate::app::App;
use crate::args::ConfigCommand;
use crate::config::{self, Layout, Paths, Surroundings, Trust};
use crate::exit::{Exit, Failure};
use crate::screen;

/// Runs the command.
pub async fn config(flags: Vec<String>, command: ConfigCommand) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Show { origin, json } => {
            let layout = match (origin, json) {
                (true, _) => Layout::Origins,
                (false, true) => Layout::Json,
                (false, false) => Layout::Toml,
            };
            let loaded = config::load(&Surroundings::from_process(flags)?)?;
            screen::print(config::show(&loaded, layout).trim_end())?;
        }
        ConfigCommand::Check => {
            let app = App::load(flags).await?;
            let model = app.choose_model().await?.model;
            screen::print(&format!(
                "ok: {} keys, {} agents, {}",
                app.loaded.values.len(),
                app.tree.agents.len() + 1,
                model.name()
            ))?;
            app.warnings()
                .iter()
                .for_each(|warning| screen::say(&format!("warning: {warning}")));
        }
        ConfigCommand::Trust { revoke } => trust(flags, revoke)?,
    }
    Ok(Exit::Ok)
}

/// Trusts the project's file as it is now, or takes that back.
fn trust(flags: Vec<String>, revoke: bool) -> Result<(), Failure> {
    let surroundings = Surroundings::from_process(flags)?;
    let paths = Paths::locate(&surroundings)?;
    let Some(file) = &paths.project_file else {
        let message = "there is no lango.toml in this folder or above it";
        return Err(Failure::new(Exit::Usage, message));
    };
    let mut trust = Trust::read(&paths);
    let failed = |error: std::io::Error| {
        let message = format!("`{}` cannot be trusted: {error}", file.display());
        Failure::new(Exit::Failed, message)
    };
    let name = file.display();
    let line = match revoke {
        true if trust.take_back(file).map_err(failed)? => {
            format!("{name} is not trusted any more")
        }
        true => format!("{name} was not trusted"),
        false => {
            let content = std::fs::read_to_string(file).map_err(failed)?;
            // What cannot be read cannot be trusted; only the wish to be trusted is no problem here.
            let before = config::load(&surroundings);
            trust.give(file, &content).map_err(failed)?;
            if let Err(problems) = config::load(&surroundings) {
                trust.take_back(file).map_err(failed)?;
                return Err(problems.into());
            }
            let opened = before.map(|before| before.unheard()).unwrap_or_default();
            let opened: String = opened
                .iter()
                .map(|line| format!("\n  now heard: {line}"))
                .collect();
            format!("{name} is trusted as it is now; a change has to be trusted again{opened}")
        }
    };
    Ok(screen::print(&line)?)
}
