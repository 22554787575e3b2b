//! Logging in to a server at an address, with OAuth 2.1: authorization code, PKCE, and the resource it is for.
//!
//! A server that wants to know who is there names who grants access to it. The person agrees in a browser; lango listens on
//! this machine for the answer, and keeps what it is granted in a file of its own, by server and address. From then on it is
//! shown by itself and renewed when it is over; nobody is asked again until it cannot be. All that comes from the server on
//! the way (addresses, names, scopes) is held against what the standards demand, because a server could lead a person to
//! grant access to something else.

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

use crate::names::line;
use crate::settings::Address;
use lango_secrets::{Masks, SecretError, SecretValue};
use reqwest::Url;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

/// Why somebody is not logged in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The server runs here, or knows its token already.
    #[error("nothing has to be logged in to: {why}")]
    NotNeeded {
        /// Why not.
        why: String,
    },
    /// What the server or its authority says cannot be relied on.
    #[error("{what}")]
    Unusable {
        /// What is wrong with it.
        what: String,
    },
    /// The authority, or the person there, said no.
    #[error("access was not granted: {why}")]
    Denied {
        /// In the authority's words.
        why: String,
    },
    /// Nobody came back from the browser.
    #[error("nobody came back from the browser within {minutes} minutes")]
    Abandoned {
        /// How long it was waited.
        minutes: u64,
    },
    /// What was granted cannot be kept.
    #[error("what was granted cannot be kept: {why}")]
    NotKept {
        /// What the system said.
        why: String,
    },
}

impl LoginError {
    pub(crate) fn unusable(what: impl Into<String>) -> Self {
        Self::Unusable { what: what.into() }
    }
}

/// What is shown to one server, and what it last said about that.
#[derive(Debug)]
pub(crate) struct Bearer {
    server: String,
    pub(crate) address: Address,
    grants: Grants,
    pub(crate) masks: Masks,
    state: Mutex<State>,
    /// One request renews, the others wait for what comes of it.
    turnstile: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    unkept: Option<Unkept>,
    challenge: Option<Challenge>,
}

/// What was renewed and could not be written. What the file holds is used up, and must not be shown again.
#[derive(Debug)]
struct Unkept {
    used_up: String,
    grant: Grant,
}

impl Bearer {
    pub(crate) fn new(server: &str, address: &Address, grants: Grants, masks: Masks) -> Arc<Self> {
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
            turnstile: Semaphore::new(1),
        })
    }

    /// What to show now: the token of the configuration, or what was granted, renewed if it is over.
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
        let token = match grant.is_over() {
            false => Some(grant.access_token().to_owned()),
            true => self.renewed(grant.access_token()).await,
        };
        let token = token.map(Zeroizing::new);
        if let Some(token) = &token {
            let name = format!("login of {}", self.server);
            self.masks.add(&name, &SecretValue::new(token.as_bytes()));
        }
        Ok(token)
    }

    /// What to show after this was refused; nothing if there is nothing else. What somebody else was granted meanwhile, in
    /// this process or in another, comes first: means of renewal that were used before are worth nothing, and an authority
    /// that sees them twice takes everything back.
    pub(crate) async fn renewed(&self, refused: &str) -> Option<String> {
        let _turn = self.turnstile.acquire().await;
        if let Some(token) = self.other_than(refused) {
            return Some(token);
        }
        let _held = self.grants.hold_renewal(&self.server).await.ok()?;
        let grant = self.grant()?;
        if grant.access_token() != refused {
            return Some(grant.access_token().to_owned());
        }
        let renewed = grant.renew(self.address.client.as_ref()).await.ok()?;
        let kept = self
            .grants
            .replace(&self.server, &self.address.url, refused, &renewed);
        match kept {
            Ok(current) => current.map(|grant| grant.access_token().to_owned()),
            Err(_) => {
                let token = renewed.access_token().to_owned();
                self.state().unkept = Some(Unkept {
                    used_up: refused.to_owned(),
                    grant: renewed,
                });
                Some(token)
            }
        }
    }

    fn other_than(&self, refused: &str) -> Option<String> {
        let token = self.grant()?.access_token().to_owned();
        (token != refused).then_some(token)
    }

    /// What a person can do when the server refuses.
    pub(crate) fn advice(&self) -> String {
        let server = &self.server;
        match (&self.address.token, self.challenge()) {
            (Some(token), _) => format!("it does not accept the token in `{}`", token.variable),
            (
                None,
                Some(Challenge {
                    scope: Some(scope),
                    is_too_little: true,
                    ..
                }),
            ) => format!(
                "it wants more than was granted; `lango mcp login {server} --scope {:?}` asks for it",
                line(&scope, 200)
            ),
            _ => format!(
                "it wants to know who is there; `lango mcp login {server}` logs in, or name the variable that holds a token in \
                 mcp.servers.{server}.tokenEnv"
            ),
        }
    }

    /// What the server said when it refused.
    pub(crate) fn note(&self, challenge: Challenge) {
        self.state().challenge = Some(challenge);
    }

    /// What it said last, if it refused.
    pub(crate) fn challenge(&self) -> Option<Challenge> {
        self.state().challenge.clone()
    }

    /// What was granted before. The file is read each time, because another process may have logged in, out, or renewed.
    pub(crate) fn grant(&self) -> Option<Grant> {
        let found = self.grants.of(&self.server, &self.address.url)?;
        let mut state = self.state();
        match &state.unkept {
            Some(unkept) if unkept.used_up == found.access_token() => Some(unkept.grant.clone()),
            _ => {
                state.unkept = None;
                Some(found)
            }
        }
    }

    /// Keeps what was granted.
    pub(crate) fn keep(&self, grant: &Grant) -> Result<(), LoginError> {
        let kept = self.grants.keep(&self.server, &self.address.url, grant);
        kept.map_err(|error| LoginError::NotKept {
            why: error.to_string(),
        })?;
        self.state().challenge = None;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
