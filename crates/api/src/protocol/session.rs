//! The session that a client names.

use crate::Api;
use crate::access::Caller;
use crate::problem::{Problem, Result};
use crate::routes::sessions::find;
use lango_core::{SessionHead, SessionId, SessionStore as _, StoreError, UserId};
use sha2::{Digest, Sha256};

/// The session of a request.
#[derive(Debug)]
pub(crate) struct ClientSession {
    /// Its id in the store.
    pub id: SessionId,
    /// The user who owns the session.
    pub user: UserId,
    /// Its stored state, or `None` if it is new.
    pub head: Option<SessionHead>,
}

impl ClientSession {
    /// The maximum length of the name that a client gives a session, in bytes.
    pub(crate) const MAX_NAME: usize = 200;

    /// Returns the session that a client names, or a new one if it names none.
    ///
    /// The id of a visible session selects that session. Any other name selects a private session of the caller. Its id
    /// is derived from user and name, so no caller can reach a session of another user.
    pub(crate) async fn choose(api: &Api, caller: &Caller, name: Option<&str>) -> Result<Self> {
        let Some(name) = name else {
            let id = SessionId::new(api.ids.fresh("s_"));
            return Ok(Self::new(id, caller));
        };
        if name.is_empty() || name.len() > Self::MAX_NAME || name.contains(char::is_control) {
            return Err(Problem::bad_request(format!(
                "the name of a session has 1 to {} bytes and no control characters",
                Self::MAX_NAME
            )));
        }
        if let Some(session) = Self::existing(api, caller, name).await? {
            return Ok(session);
        }
        let id = private_id(&caller.user, name);
        let existing = Self::existing(api, caller, &id).await?;
        Ok(existing.unwrap_or_else(|| Self::new(SessionId::new(id), caller)))
    }

    fn new(id: SessionId, caller: &Caller) -> Self {
        Self {
            id,
            user: caller.user.clone(),
            head: None,
        }
    }

    async fn existing(api: &Api, caller: &Caller, id: &str) -> Result<Option<Self>> {
        let found = match find(api, caller, id).await {
            Ok(found) => found,
            Err(problem) if problem.status == 404 => return Ok(None),
            Err(problem) => return Err(problem),
        };
        match api.store.read_head(&found.id).await {
            Ok(head) => Ok(Some(Self {
                id: found.id,
                user: found.user,
                head: Some(head),
            })),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Derives the id of a private session. It has 128 bits, so that collisions cannot be found.
fn private_id(user: &UserId, name: &str) -> String {
    let mut hasher = Sha256::new();
    for part in ["client session", user.as_str(), name] {
        hasher.update(part);
        hasher.update([0]);
    }
    let digest = base16ct::lower::encode_string(&hasher.finalize()[..16]);
    format!("s_{digest}")
}
