//! The keys and tokens that the configuration names: environment variables, and `secret:NAME` for secrets in the
//! vault. They are looked up when a request is built, so that a rotated secret is used without a restart.

use super::references::{KeySetting, key_settings, secret_of};
use super::source::{UseError, describe_unusable};
use super::{PromptMode, UserVaults, can_ask};
use crate::app::credentials_file::StoredKeys;
use crate::app::failure::{Failure, FailureKind};
use crate::app::notice::notice;
use lango_config::Settings;
use lango_core::{BoxFuture, RecordSelection, UserId};
use lango_models::known_providers;
use lango_secrets::{Credential, CredentialSource, Masks, SecretError, SecretName, SecretValue};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a value is cached before the vault is read again.
const CACHE_TIME: Duration = Duration::from_secs(5);

/// Within this interval the audit log records the uses of a secret only once.
const USE_INTERVAL: Duration = Duration::from_secs(60);

pub struct Credentials {
    env: BTreeMap<OsString, OsString>,
    user: UserId,
    vaults: Arc<UserVaults>,
    masks: Masks,
    /// The file of keys that `lango setup` stored outside of the vault.
    stored: StoredKeys,
    /// The names of the secrets in the vault at the start.
    listed: BTreeSet<SecretName>,
    cache: Arc<Mutex<HashMap<SecretName, CachedValue>>>,
    uses: Mutex<HashMap<SecretName, Instant>>,
    cache_time: Duration,
}

struct CachedValue {
    value: Arc<SecretValue>,
    read: Instant,
}

/// The parts that [`Credentials`] are built from.
pub struct CredentialParts<'a> {
    pub settings: &'a Settings,
    pub env: &'a BTreeMap<OsString, OsString>,
    pub vaults: Arc<UserVaults>,
    pub masks: Masks,
    pub stored: StoredKeys,
    pub prompt_mode: PromptMode,
}

impl Credentials {
    /// Finds out which credentials exist. Does not touch the vault if no setting names a secret. A vault that cannot
    /// be opened is not an error: only operations that need a secret fail.
    pub async fn open(parts: CredentialParts<'_>) -> Result<Arc<Self>, Failure> {
        let CredentialParts {
            settings,
            env,
            vaults,
            masks,
            stored,
            prompt_mode,
        } = parts;
        let named = key_settings(settings);
        let mut secrets = Vec::new();
        for setting in &named {
            if let Some(name) = secret_of(setting.value) {
                let name = SecretName::new(name).map_err(|error| invalid(setting, &error))?;
                secrets.push((name, setting.is_needed_now(settings)));
            }
        }
        let user = settings.session.user.clone();
        let mut listed = BTreeSet::new();
        if !secrets.is_empty() {
            match vaults.sealed(&user, RecordSelection::None).await {
                Ok(sealed) => {
                    let entries = sealed.iter().flat_map(|sealed| sealed.entries());
                    listed.extend(entries.map(|entry| entry.name.clone()));
                }
                Err(error) => notice(&format!("cannot read the vault: {error}")),
            }
        }
        let credentials = Self {
            env: env.clone(),
            user,
            vaults,
            masks,
            stored,
            listed,
            cache: Arc::default(),
            uses: Mutex::default(),
            cache_time: CACHE_TIME,
        };
        credentials.mask_environment(&named);
        credentials.stored.mask(&credentials.masks);
        let is_needed = |(name, is_needed): &(SecretName, bool)| {
            *is_needed && credentials.listed.contains(name)
        };
        if secrets.iter().any(is_needed) {
            credentials.unlock(prompt_mode).await?;
        }
        Ok(Arc::new(credentials))
    }

    /// Returns whether a setting has a value, as far as that is known without unlocking.
    pub fn has(&self, setting: &str) -> bool {
        match secret_of(setting) {
            Some(name) => SecretName::new(name).is_ok_and(|name| self.listed.contains(&name)),
            None => self.variable(setting).is_some(),
        }
    }

    /// Returns the handle of a setting that has a value.
    pub fn find(self: &Arc<Self>, setting: &str) -> Option<Credential> {
        self.has(setting).then(|| self.handle(setting))
    }

    /// Returns the handle of a setting, whether it has a value or not.
    pub fn handle(self: &Arc<Self>, setting: &str) -> Credential {
        Credential::new(Arc::clone(self) as Arc<dyn CredentialSource>, setting)
    }

    pub fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Returns the keys that are stored outside of the vault.
    pub fn stored(&self) -> &StoredKeys {
        &self.stored
    }

    /// Returns the stored key of a provider, if there is one for this address.
    pub fn find_stored(&self, provider: &str, address: &str) -> Option<Credential> {
        self.stored.find(provider, address, &self.masks)
    }

    /// Unlocks the vault while the user can be prompted. Other failures are only printed, because they recur where a
    /// secret is needed; Ctrl-C and termination signals are errors.
    async fn unlock(&self, prompt_mode: PromptMode) -> Result<(), Failure> {
        let problem = match prompt_mode {
            PromptMode::Never => {
                let opened = self.vaults.opened(&self.user).await;
                opened.err().map(|error| error.to_string())
            }
            _ if can_ask() => {
                let is_signal =
                    |exit| matches!(exit, FailureKind::Interrupted | FailureKind::Terminated);
                match self.vaults.unlock(&self.user).await {
                    Err(failure) if is_signal(failure.kind) => return Err(failure),
                    unlocked => unlocked.err().map(|failure| failure.to_string()),
                }
            }
            // The vault is opened when it is needed.
            _ => None,
        };
        if let Some(problem) = problem {
            notice(&format!(
                "{problem}\nthe secrets named in the configuration are not used until the vault is unlocked"
            ));
        }
        Ok(())
    }

    fn variable(&self, name: &str) -> Option<&[u8]> {
        let value = self.env.get(OsStr::new(name))?.as_bytes().trim_ascii();
        (!value.is_empty()).then_some(value)
    }

    /// Masks the values of variables from the start, because programs that lango starts may print them.
    fn mask_environment(&self, named: &[KeySetting<'_>]) {
        let known = known_providers().iter();
        let known = known.flat_map(|known| known.keys.iter().map(String::as_str));
        for name in named.iter().map(|setting| setting.value).chain(known) {
            if let Some(value) = self.variable(name) {
                self.masks.add(name, &SecretValue::new(value));
            }
        }
    }

    async fn look_up(&self, setting: &str) -> Result<Arc<SecretValue>, SecretError> {
        let unavailable = |detail: String| SecretError::Unavailable { detail };
        let Some(name) = secret_of(setting) else {
            let value = self.variable(setting);
            let value = value.ok_or_else(|| {
                unavailable(format!("the environment variable `{setting}` is not set"))
            })?;
            return Ok(Arc::new(SecretValue::new(value)));
        };
        let name = SecretName::new(name).map_err(|error| unavailable(error.to_string()))?;
        if let Some(value) = self.cached(&name) {
            return Ok(value);
        }
        let is_recorded = self.is_recorded(&name);
        let value = self.vaults.with_open(&self.user, async |vault| {
            let value = vault.sendable_value(&name).await?;
            if !is_recorded {
                vault.log_value(&name).await?;
            }
            Ok(value)
        });
        let value = Arc::new(value.await.map_err(|error| unusable(error, &name))?);
        self.masks.add(name.as_str(), &value);
        if !is_recorded {
            let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
            uses.insert(name.clone(), Instant::now());
        }
        self.cache_value(name, &value);
        Ok(value)
    }

    fn cached(&self, name: &SecretName) -> Option<Arc<SecretValue>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = cache.get(name);
        let cached = cached.filter(|cached| cached.read.elapsed() < self.cache_time);
        cached.map(|cached| Arc::clone(&cached.value))
    }

    /// Caches a value, and removes it from memory after [`CACHE_TIME`].
    fn cache_value(&self, name: SecretName, value: &Arc<SecretValue>) {
        let cached = CachedValue {
            value: Arc::clone(value),
            read: Instant::now(),
        };
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(name, cached);
        let cache = Arc::downgrade(&self.cache);
        tokio::spawn(async move {
            tokio::time::sleep(CACHE_TIME).await;
            if let Some(cache) = cache.upgrade() {
                let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
                cache.retain(|_, cached| cached.read.elapsed() < CACHE_TIME);
            }
        });
    }

    fn is_recorded(&self, name: &SecretName) -> bool {
        let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.get(name).is_some_and(|at| at.elapsed() < USE_INTERVAL)
    }
}

impl CredentialSource for Credentials {
    fn value<'a>(
        &'a self,
        setting: &'a str,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>> {
        Box::pin(self.look_up(setting))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

fn invalid(setting: &KeySetting<'_>, error: &lango_secrets::InvalidName) -> Failure {
    let message = format!("{} = \"{}\": {error}", setting.key, setting.value);
    Failure::config(message).next(format!(
        "write `secret:` and the name of a secret in {}; run `lango secrets list` to see them",
        setting.key
    ))
}

fn unusable(error: UseError, name: &SecretName) -> SecretError {
    match error {
        UseError::Secret(error) => error,
        UseError::Vault(error) => SecretError::Unusable {
            name: name.clone(),
            detail: describe_unusable(&error, name),
        },
    }
}

#[cfg(test)]
mod tests;
