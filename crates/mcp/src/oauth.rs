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
pub(crate) use token::Grant;

use crate::names::line;
use crate::settings::Address;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

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
    state: Mutex<State>,
    /// One request renews, the others wait for what comes of it.
    turnstile: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    grant: Option<Grant>,
    is_read: bool,
    challenge: Option<Challenge>,
}

impl Bearer {
    pub(crate) fn new(server: &str, address: &Address, grants: Grants) -> Arc<Self> {
        Arc::new(Self {
            server: server.to_owned(),
            address: address.clone(),
            grants,
            state: Mutex::default(),
            turnstile: Semaphore::new(1),
        })
    }

    /// What to show now: the token of the configuration, or what was granted, renewed if it is over.
    pub(crate) async fn token(&self) -> Option<String> {
        if let Some(token) = &self.address.token {
            return token.value.as_ref().map(|value| value.reveal().to_owned());
        }
        let grant = self.grant()?;
        match grant.is_over() {
            false => Some(grant.access_token().to_owned()),
            true => self.renewed(grant.access_token()).await,
        }
    }

    /// What to show after this was refused; nothing if there is nothing else.
    pub(crate) async fn renewed(&self, refused: &str) -> Option<String> {
        let _turn = self.turnstile.acquire().await;
        let grant = self.grant()?;
        if grant.access_token() != refused {
            return Some(grant.access_token().to_owned());
        }
        let renewed = grant.renew().await.ok()?;
        let token = renewed.access_token().to_owned();
        self.keep(renewed).ok()?;
        Some(token)
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

    /// What was granted before.
    pub(crate) fn grant(&self) -> Option<Grant> {
        if !self.state().is_read {
            let found = self.grants.of(&self.server, &self.address.url);
            let mut state = self.state();
            state.is_read = true;
            state.grant = found;
        }
        self.state().grant.clone()
    }

    /// Keeps what was granted.
    pub(crate) fn keep(&self, grant: Grant) -> Result<(), LoginError> {
        let kept = self.grants.keep(&self.server, &self.address.url, &grant);
        kept.map_err(|error| LoginError::NotKept {
            why: error.to_string(),
        })?;
        let mut state = self.state();
        state.grant = Some(grant);
        state.is_read = true;
        state.challenge = None;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
