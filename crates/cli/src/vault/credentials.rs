//! The keys and tokens that the configuration names: environment variables, and `secret:NAME` of the vault. They are looked up
//! when a request is built, so that a secret that is rotated is used without a restart.

use super::references::{KeySetting, key_settings, secret_of};
use super::source::{UseError, describe_unusable};
use super::{Asking, UserVaults, can_ask};
use crate::config::Settings;
use crate::exit::{Exit, Failure};
use crate::screen;
use lango_core::{BoxFuture, RecordSelection, UserId};
use lango_models::known_providers;
use lango_secrets::{Credential, CredentialSource, Masks, SecretError, SecretName, SecretValue};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a value is used before the vault is asked again.
const CACHE_TIME: Duration = Duration::from_secs(5);

/// Interval within which the audit log has one entry for the uses of a secret.
const USE_INTERVAL: Duration = Duration::from_secs(60);

/// The keys and tokens of the configuration.
pub struct Credentials {
    env: BTreeMap<OsString, OsString>,
    user: UserId,
    vaults: Arc<UserVaults>,
    masks: Masks,
    /// The secrets that the vault had at the start.
    listed: BTreeSet<SecretName>,
    cache: Arc<Mutex<HashMap<SecretName, CachedValue>>>,
    uses: Mutex<HashMap<SecretName, Instant>>,
    cache_time: Duration,
}

struct CachedValue {
    value: Arc<SecretValue>,
    read: Instant,
}

/// What credentials are made of.
pub struct CredentialParts<'a> {
    /// The configuration.
    pub settings: &'a Settings,
    /// lango's environment.
    pub env: &'a BTreeMap<OsString, OsString>,
    /// The vaults.
    pub vaults: Arc<UserVaults>,
    /// The values to mask.
    pub masks: Masks,
    /// Whether the passphrase may be asked for.
    pub asking: Asking,
}

impl Credentials {
    /// Finds out which credentials there are. Does not touch the vault if no setting names a secret. A vault that cannot be
    /// opened is no error: only what needs a secret fails.
    pub async fn open(parts: CredentialParts<'_>) -> Result<Arc<Self>, Failure> {
        let CredentialParts {
            settings,
            env,
            vaults,
            masks,
            asking,
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
                Err(error) => screen::say(&format!("the vault cannot be read: {error}")),
            }
        }
        let credentials = Self {
            env: env.clone(),
            user,
            vaults,
            masks,
            listed,
            cache: Arc::default(),
            uses: Mutex::default(),
            cache_time: CACHE_TIME,
        };
        credentials.mask_environment(&named);
        let is_needed = |(name, is_needed): &(SecretName, bool)| {
            *is_needed && credentials.listed.contains(name)
        };
        if secrets.iter().any(is_needed) {
            credentials.unlock(asking).await?;
        }
        Ok(Arc::new(credentials))
    }

    /// Returns whether there is a value for a setting, as far as it shows without unlocking.
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

    /// Returns the masked values.
    pub fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Looks a value up, for a command that cannot go on without it.
    pub async fn check(&self, setting: &str) -> Result<(), SecretError> {
        self.look_up(setting).await.map(|_| ())
    }

    /// Unlocks the vault while somebody can be asked. What fails here fails again where a secret is needed; only Ctrl-C and
    /// signals that end the process are errors.
    async fn unlock(&self, asking: Asking) -> Result<(), Failure> {
        let problem = match asking {
            Asking::Never => {
                let opened = self.vaults.opened(&self.user).await;
                opened.err().map(|error| error.to_string())
            }
            _ if can_ask() => {
                let is_signal = |exit| matches!(exit, Exit::Interrupted | Exit::Terminated);
                match self.vaults.unlock(&self.user).await {
                    Err(failure) if is_signal(failure.exit) => return Err(failure),
                    unlocked => unlocked.err().map(|failure| failure.to_string()),
                }
            }
            // It is opened when it is needed.
            _ => None,
        };
        if let Some(problem) = problem {
            screen::say(&format!(
                "{problem}\nthe secrets that the configuration names are not used until the vault is unlocked"
            ));
        }
        Ok(())
    }

    fn variable(&self, name: &str) -> Option<&[u8]> {
        let value = self.env.get(OsStr::new(name))?.as_bytes().trim_ascii();
        (!value.is_empty()).then_some(value)
    }

    /// Masks the values of variables from the start: programs that lango starts may print them.
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
        self.remember(name, &value);
        Ok(value)
    }

    fn cached(&self, name: &SecretName) -> Option<Arc<SecretValue>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = cache.get(name);
        let cached = cached.filter(|cached| cached.read.elapsed() < self.cache_time);
        cached.map(|cached| Arc::clone(&cached.value))
    }

    /// Caches a value, and drops it from memory after [`CACHE_TIME`].
    fn remember(&self, name: SecretName, value: &Arc<SecretValue>) {
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
    Failure::new(Exit::Config, message).next(format!(
        "write `secret:` and the name of a secret in {}; `lango secrets list` shows them",
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
