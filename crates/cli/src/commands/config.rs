//! `lango config`: shows the effective configuration and its origins, checks it, changes its files, and manages trust in
//! project files.

mod change;
mod edit;
mod trust;

use crate::args::ConfigCommand;
use crate::exit::Exit;
use crate::screen;
use change::TargetFile;
use lango::app::App;
use lango::app::Failure;
use lango::app::credentials_file::StoredKeys;
use lango::app::model_selector::check_model_name;
use lango::app::project_trust::revoke_trust;
use lango_config::edit::check_key;
use lango_config::{ConfigValue, Layout, ProcessEnv};
use serde_json::json;

/// Runs the command.
pub(super) async fn config(
    flags: Vec<String>,
    command: Option<ConfigCommand>,
) -> Result<Exit, Failure> {
    match command.unwrap_or_default() {
        ConfigCommand::Show { origin, json } => {
            let layout = match (origin, json) {
                (true, _) => Layout::Origins,
                (false, true) => Layout::Json,
                (false, false) => Layout::Toml,
            };
            let loaded = lango_config::load(&ProcessEnv::from_process(flags)?)?;
            screen::print(lango_config::show(&loaded, layout).trim_end())?;
            if layout == Layout::Origins {
                let stored = StoredKeys::at(loaded.paths.credentials());
                for provider in stored.providers() {
                    let path = stored.path().display();
                    screen::print(&format!("# the key of {provider} is stored in {path}"))?;
                }
            }
            let warnings = loaded.warnings();
            warnings
                .iter()
                .for_each(|warning| screen::say(&format!("warning: {warning}")));
        }
        ConfigCommand::Get { key, json } => get(flags, &key, json)?,
        ConfigCommand::Set {
            key,
            value,
            project,
        } => {
            if key == "agent.model" {
                refuse_unknown_model(flags.clone(), &value)?;
            }
            TargetFile::locate(flags.clone(), project)?.set(&key, &value)?;
            warn_if_useless(flags, &key).await;
        }
        ConfigCommand::Unset { key, project } => TargetFile::locate(flags, project)?.unset(&key)?,
        ConfigCommand::Edit { project } => {
            edit::edit(&TargetFile::locate(flags, project)?).await?;
        }
        ConfigCommand::Path { project } => {
            let target = TargetFile::locate(flags, project)?;
            screen::print(&target.path.display().to_string())?;
            if !target.path.exists() {
                screen::say("it does not exist yet");
            }
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
        ConfigCommand::Trust { revoke: true, .. } => screen::print(&revoke_trust(flags)?)?,
        ConfigCommand::Trust { yes, .. } => trust::trust(flags, yes).await?,
    }
    Ok(Exit::Ok)
}

/// Fails if a value of `agent.model` names no provider that lango knows or the configuration sets up. A configuration
/// that cannot be read is reported when the value is set.
fn refuse_unknown_model(flags: Vec<String>, value: &str) -> Result<(), Failure> {
    let Ok(loaded) = lango_config::load(&ProcessEnv::from_process(flags)?) else {
        return Ok(());
    };
    // A value is TOML if it can be, else a literal text.
    let quoted = value.parse::<toml::Value>().ok();
    let name = quoted
        .as_ref()
        .and_then(toml::Value::as_str)
        .unwrap_or(value);
    check_model_name(&loaded.settings, name)
}

/// Warns if no model can be used with the changed configuration of models, or if a changed rule matches no call.
async fn warn_if_useless(flags: Vec<String>, key: &str) {
    let is_of_models = ["agent.model", "agent.fallback", "providers."];
    let is_of_models = is_of_models.iter().any(|start| key.starts_with(start));
    if !is_of_models && key != "approval.rules" {
        return;
    }
    let problems = async {
        let app = App::load(flags).await?;
        if is_of_models {
            app.choose_model().await?;
            return Ok(Vec::new());
        }
        let unused = app.unused_rule_warnings();
        Ok::<_, Failure>([unused, app.wildcard_rule_warnings()].concat())
    };
    let problems = problems.await;
    let problems = problems.unwrap_or_else(|failure| vec![failure.to_string()]);
    for problem in problems {
        screen::say(&format!("warning: {problem}"));
    }
}

/// Prints the effective value of one key: a text as it is, anything else as TOML. Fails if the key is not set.
fn get(flags: Vec<String>, key: &str, as_json: bool) -> Result<(), Failure> {
    check_key(key)?;
    let loaded = lango_config::load(&ProcessEnv::from_process(flags)?)?;
    let value = loaded.values.iter().find(|value| value.name == key);
    if as_json {
        let value = json!({
            "key": key,
            "value": value.and_then(|value| value.value.as_ref()),
            "origin": value.map_or_else(|| "default".to_owned(), |value| value.origin.to_string()),
        });
        return Ok(screen::print(&screen::json(&value, screen::Layout::Line)?)?);
    }
    let text = value.and_then(|value| match &value.value {
        Some(toml::Value::String(text)) => Some(text.clone()),
        _ => ConfigValue::render(value),
    });
    match text {
        Some(text) => Ok(screen::print(&text)?),
        None => Err(Failure::failed(format!("`{key}` is not set"))
            .next(format!("lango config set {key} VALUE"))),
    }
}
