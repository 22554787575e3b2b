//! Undoes what `lango setup` wrote: the key of a provider and its settings, or only the selection of a model.

use super::key_storage::secret_name;
use super::{MODEL, check_name, config_file};
use crate::app::credentials_file::remove_key;
use crate::app::model_selector::ModelSelector;
use crate::app::vault::{find_entry, key_settings, remove_secret, secret_of};
use crate::app::{App, Failure};
use lango_config::edit::{self, KeyChange};
use lango_secrets::SecretName;
use lango_vault::OpenVault;
use std::path::Path;

/// The removal of a provider.
pub struct Removal {
    provider: String,
    /// The keys to remove from the user's configuration file, each with the line to print.
    keys: Vec<(String, String)>,
    /// The secret of the vault with the key.
    secret: Option<SecretName>,
    /// Another setting that uses the secret, which therefore stays.
    other_use: Option<String>,
    has_stored_key: bool,
}

impl Removal {
    /// Finds out what there is to remove. Fails if there is nothing, or if the file of keys cannot be used.
    pub fn new(app: &App, provider: &str) -> Result<Self, Failure> {
        check_name(provider)?;
        let stored = app.credentials.stored();
        stored.check()?;
        let path = &app.loaded.paths.user_file;
        let written = |field: &str| config_file::text_at(path, &["providers", provider, field]);
        let mut keys = Vec::new();
        for field in ["kind", "baseUrl"] {
            if let Some(value) = written(field)? {
                let line = format!("removed providers.{provider}.{field} = \"{value}\"");
                keys.push((format!("providers.{provider}.{field}"), line));
            }
        }
        // A variable, or a secret with another name, is the user's own choice.
        let setting = written("apiKeyEnv")?;
        let secret = secret_name(provider)?;
        let named = setting.as_deref().and_then(secret_of);
        let secret = (named == Some(secret.as_str())).then_some(secret);
        if let Some(secret) = &secret {
            let line = format!("removed providers.{provider}.apiKeyEnv = \"secret:{secret}\"");
            keys.push((format!("providers.{provider}.apiKeyEnv"), line));
        }
        let own = format!("providers.{provider}.apiKeyEnv");
        let other_use = key_settings(&app.loaded.settings)
            .into_iter()
            .find(|other| other.key != own && Some(other.value) == setting.as_deref())
            .map(|other| other.key);
        let model = config_file::text_at(path, &["agent", "model"])?;
        let of_provider = |model: &String| model.starts_with(&format!("{provider}/"));
        if let Some(model) = model.filter(of_provider) {
            keys.push((MODEL.to_owned(), format!("removed {MODEL} = \"{model}\"")));
        }
        let has_stored_key = stored.providers().iter().any(|name| name == provider);
        if keys.is_empty() && !has_stored_key {
            let message = format!("`lango setup` has stored nothing for `{provider}`");
            return Err(Failure::usage(message).next(
                "run `lango config show --origin` to see the providers and where their keys are stored",
            ));
        }
        Ok(Self {
            provider: provider.to_owned(),
            keys,
            secret,
            other_use,
            has_stored_key,
        })
    }

    /// Returns whether the key is in the vault, which must then be open for [`Self::write`].
    pub fn needs_vault(&self) -> bool {
        self.secret.is_some() && self.other_use.is_none()
    }

    /// Removes everything. Returns what was removed, one line each.
    pub async fn write(self, app: &App, vault: Option<&OpenVault>) -> Result<Vec<String>, Failure> {
        let provider = &self.provider;
        let mut lines = Vec::new();
        let stored = app.credentials.stored().path();
        if self.has_stored_key && remove_key(stored, provider)? {
            lines.push(format!(
                "removed the key of {provider} from {}",
                stored.display()
            ));
        }
        if let (Some(name), Some(vault)) = (&self.secret, vault)
            && find_entry(vault, name).await?.is_some()
        {
            remove_secret(vault, name, false).await?;
            lines.push(format!("removed the secret {name} from the vault"));
        }
        if let (Some(name), Some(key)) = (&self.secret, &self.other_use) {
            lines.push(format!(
                "left the secret {name} in the vault, because {key} uses it"
            ));
        }
        let (keys, removed): (Vec<String>, Vec<String>) = self.keys.into_iter().unzip();
        let path = &app.loaded.paths.user_file;
        if !keys.is_empty() {
            edit::change_keys(path, &unsets(path, provider, keys)?)?;
        }
        let file = path.display();
        lines.extend(removed.into_iter().map(|line| format!("{line} in {file}")));
        Ok(lines)
    }
}

/// Returns the changes that remove these keys, and the section of the provider if nothing would be left in it.
fn unsets(path: &Path, provider: &str, mut keys: Vec<String>) -> Result<Vec<KeyChange>, Failure> {
    let section = format!("providers.{provider}");
    let names = config_file::names_in(path, &["providers", provider])?;
    let is_removed = |name: &String| keys.contains(&format!("{section}.{name}"));
    if !names.is_empty() && names.iter().all(is_removed) {
        keys.retain(|key| !key.starts_with(&format!("{section}.")));
        keys.push(section);
    }
    let unset = |key| KeyChange::Unset { key };
    Ok(keys.into_iter().map(unset).collect())
}

/// Removes `agent.model` from the user's configuration file. Returns what was done.
pub fn unset_model(app: &App) -> Result<String, Failure> {
    let path: &Path = &app.loaded.paths.user_file;
    let shown = path.display();
    Ok(match config_file::text_at(path, &["agent", "model"])? {
        Some(model) => {
            edit::unset(path, MODEL)?;
            format!("removed agent.model = \"{model}\" in {shown}")
        }
        None => format!("{shown} selects no model"),
    })
}

/// Returns a warning if another model than the demo answers although `agent.model` was unset.
pub async fn demo_warning(app: &App) -> Option<String> {
    let mut settings = app.loaded.settings.clone();
    settings.agent.model = None;
    let selector = ModelSelector {
        settings: &settings,
        ..app.model_selector()
    };
    match selector.choose().await {
        Ok(choice) if choice.is_demo => None,
        Ok(choice) => Some(format!(
            "{} answers instead of the demo, because {}; `lango -m offline/rules` uses the demo once",
            choice.model.name(),
            choice.reason
        )),
        Err(failure) => Some(failure.to_string()),
    }
}
