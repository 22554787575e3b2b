//! `lango config`: shows the effective configuration and its origins, checks it, and manages trust in project files.

use crate::args::ConfigCommand;
use crate::exit::Exit;
use crate::screen;
use lango::app::App;
use lango::app::Failure;
use lango::app::project_trust::{revoke_trust, trust_project};
use lango_config::{Layout, ProcessEnv};

/// Runs the command.
pub(super) async fn config(flags: Vec<String>, command: ConfigCommand) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Show { origin, json } => {
            let layout = match (origin, json) {
                (true, _) => Layout::Origins,
                (false, true) => Layout::Json,
                (false, false) => Layout::Toml,
            };
            let loaded = lango_config::load(&ProcessEnv::from_process(flags)?)?;
            screen::print(lango_config::show(&loaded, layout).trim_end())?;
            let warnings = loaded.warnings();
            warnings
                .iter()
                .for_each(|warning| screen::say(&format!("warning: {warning}")));
        }
        ConfigCommand::Check => {
            let app = App::load(flags).await?;
            let choice = app.choose_model().await?;
            choice.warn();
            let model = choice.model;
            screen::print(&format!(
                "ok: {} keys, {} agents, {}",
                app.loaded.values.len(),
                app.tree.agents.len() + 1,
                model.name()
            ))?;
            app.warnings()
                .iter()
                .chain(&app.wildcard_rule_warnings())
                .for_each(|warning| screen::say(&format!("warning: {warning}")));
        }
        ConfigCommand::Trust { revoke: false } => screen::print(&trust_project(flags)?)?,
        ConfigCommand::Trust { revoke: true } => screen::print(&revoke_trust(flags)?)?,
    }
    Ok(Exit::Ok)
}
