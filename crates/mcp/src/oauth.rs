//! Login to HTTP servers with OAuth 2.1: authorization code, PKCE and resource indicators.
//!
//! A server that requires authorization names its authorization server. The user agrees in a browser; lango waits for
//! the redirect on a local port and stores the grant in its own file, by server and address. From then on lango sends
//! the access token and refreshes it when it expires; the user must log in again only if that fails. lango checks
//! everything that comes from the server (addresses, names, scopes) against the standards, because a server could trick
//! the user into granting access to something else.

mod challenge;
mod client;
mod discovery;
mod listener;
mod login;
mod store;
mod token;
mod web;

pub(crate) use challenge::Challenge;
pub(crate) use login::login;
pub(crate) use store::Grants;
pub use store::seal_grants;
pub(crate) use token::Grant;

use crate::names::one_line;
use crate::settings::HttpSettings;
use lango_secrets::{Masks, SecretError, SecretValue};
use reqwest::Url;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

/// The reason why a login failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// lango starts the server itself, or a token is configured.
    #[error("no login is needed: {why}")]
    NotNeeded { why: String },
    /// The server or its authorization server cannot be reached, or sent something invalid.
    #[error("{what}")]
    Unusable { what: String },
    /// The authorization server, or the user there, refused.
    #[error("access was not granted: {why}")]
    Denied {
        /// The authorization server's message.
        why: String,
    },
    /// The browser was not redirected back to lango in time.
    #[error("the login in the browser was not finished within {minutes} minutes; try again")]
    Abandoned { minutes: u64 },
    #[error("the grant cannot be stored: {why}")]
    NotStored { why: String },
}

impl LoginError {
    pub(crate) fn unusable(what: impl Into<String>) -> Self {
        Self::Unusable { what: what.into() }
    }
}

/// The authorization for one server: its token, and the server's last challenge.
#[derive(Debug)]
pub(crate) struct ServerAuth {
    server: String,
    pub(crate) address: HttpSettings,
    grants: Grants,
    pub(crate) masks: Masks,
    state: Mutex<State>,
    /// Held by the request that refreshes the token, while the others wait for the result.
    renewal_lock: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    unsaved: Option<UnsavedGrant>,
    challenge: Option<Challenge>,
}

/// A refreshed grant that could not be written. The grant in the file is spent and must not be used again.
#[derive(Debug)]
struct UnsavedGrant {
    spent_token: String,
    grant: Grant,
}

impl ServerAuth {
    pub(crate) fn new(
        server: &str,
        address: &HttpSettings,
        grants: Grants,
        masks: Masks,
    ) -> Arc<Self> {
        let mut address = address.clone();
        if let (Some(token), Ok(url)) = (&mut address.token, Url::parse(&address.url)) {
            let value = token.value.take();
            token.value = value.map(|value| value.bound_to(&url));
        }
        Arc::new(Self {
            server: server.to_owned(),
            address,
            grants,
            masks,
            state: Mutex::default(),
            renewal_lock: Semaphore::new(1),
        })
    }

    /// Returns the token to send: the configured one, or that of the grant, refreshed if it has expired.
    pub(crate) async fn token(&self) -> Result<Option<Zeroizing<String>>, SecretError> {
        if let Some(token) = &self.address.token {
            let (Some(value), Ok(url)) = (&token.value, Url::parse(&self.address.url)) else {
                return Ok(None);
            };
            return value.text_for(&url).await.map(Some);
        }
        let Some(grant) = self.grant() else {
            return Ok(None);
        };
        let token = if grant.has_expired() {
            self.renewed(grant.access_token()).await
        } else {
            Some(grant.access_token().to_owned())
        };
        let token = token.map(Zeroizing::new);
        if let Some(token) = &token {
            let name = format!("login of {}", self.server);
            self.masks.add(&name, &SecretValue::new(token.as_bytes()));
        }
        Ok(token)
    }

    /// Returns another token after the server refused this one; `None` if lango cannot get one. Prefers a token that
    /// this or another process got in the meantime, because a refresh token can be used only once, and an
    /// authorization server that sees it twice revokes the whole grant.
    pub(crate) async fn renewed(&self, refused: &str) -> Option<String> {
        let _turn = self.renewal_lock.acquire().await;
        if let Some(token) = self.token_other_than(refused) {
            return Some(token);
        }
        let _lock = self.grants.lock_renewal(&self.server).await.ok()?;
        let grant = self.grant()?;
        if grant.access_token() != refused {
            return Some(grant.access_token().to_owned());
        }
        let renewed = grant.renew(self.address.client.as_ref()).await.ok()?;
        let stored = self
            .grants
            .replace(&self.server, &self.address.url, refused, &renewed);
        match stored {
            Ok(current) => current.map(|grant| grant.access_token().to_owned()),
            Err(_) => {
                let token = renewed.access_token().to_owned();
                self.state().unsaved = Some(UnsavedGrant {
                    spent_token: refused.to_owned(),
                    grant: renewed,
                });
                Some(token)
            }
        }
    }

    fn token_other_than(&self, refused: &str) -> Option<String> {
        let token = self.grant()?.access_token().to_owned();
        (token != refused).then_some(token)
    }

    /// Returns advice for the user whose request the server refused.
    pub(crate) fn advice(&self) -> String {
        let server = &self.server;
        match (&self.address.token, self.challenge()) {
            (Some(token), _) => format!("it does not accept the token in `{}`", token.variable),
            (
                None,
                Some(Challenge {
                    scope: Some(scope),
                    is_scope_insufficient: true,
                    ..
                }),
            ) => format!(
                "it requires more access than was granted; run `lango mcp login {server} --scope {:?}`",
                one_line(&scope, 200)
            ),
            _ => format!(
                "it requires a login; run `lango mcp login {server}`, or set mcp.servers.{server}.tokenEnv to an environment \
                 variable that contains a token"
            ),
        }
    }

    /// Records the server's challenge after it refused a request.
    pub(crate) fn record_challenge(&self, challenge: Challenge) {
        self.state().challenge = Some(challenge);
    }

    /// Returns the server's last challenge.
    pub(crate) fn challenge(&self) -> Option<Challenge> {
        self.state().challenge.clone()
    }

    /// Returns the current grant. Reads the file each time, because another process may have logged in or out, or
    /// refreshed.
    pub(crate) fn grant(&self) -> Option<Grant> {
        let stored = self.grants.of(&self.server, &self.address.url)?;
        let mut state = self.state();
        match &state.unsaved {
            Some(unsaved) if unsaved.spent_token == stored.access_token() => {
                Some(unsaved.grant.clone())
            }
            _ => {
                state.unsaved = None;
                Some(stored)
            }
        }
    }

    pub(crate) fn store(&self, grant: &Grant) -> Result<(), LoginError> {
        let stored = self.grants.store(&self.server, &self.address.url, grant);
        stored.map_err(|error| LoginError::NotStored {
            why: error.to_string(),
        })?;
        self.state().challenge = None;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
