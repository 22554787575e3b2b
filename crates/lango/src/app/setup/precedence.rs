//! Settings and keys that take precedence over those that setup wrote.

use crate::app::App;
use crate::app::vault::secret_of;
use lango_config::Origin;

/// Returns warnings about settings that take precedence over what [`Connection::write`](super::Connection::write) wrote.
pub fn precedence_warnings(app: &App, provider: &str, has_stored_key: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let values = app.loaded.values.iter();
    let model = values.clone().find(|value| value.name == "agent.model");
    match model.map(|value| &value.origin) {
        Some(origin @ Origin::Variable(_)) => warnings.push(format!(
            "{origin} is set and takes precedence over the configuration file"
        )),
        Some(origin @ Origin::File { path, .. }) if *path != app.loaded.paths.user_file => {
            warnings.push(format!(
                "agent.model in {origin} takes precedence in this project"
            ));
        }
        _ => {}
    }
    let selector = app.model_selector();
    let variable = selector.key_setting(provider);
    // A secret of the vault is no longer used: `write` has removed its setting.
    let variable = variable.filter(|name| has_stored_key && secret_of(name).is_none());
    if let Some(variable) = variable {
        warnings.push(format!(
            "{variable} is set and takes precedence over the stored key"
        ));
    }
    warnings
}
