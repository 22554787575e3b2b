//! A built team of agents.

use crate::approver::Approver;
use crate::{Builder, Error, Session};
use lango_core::{SessionCatalog, SessionId, SessionStore, UserId};
use lango_engine::{Runner, Tree};
use std::fmt;
use std::sync::Arc;

/// A team of agents with its model, its tools and its store. Clones share all of it.
#[derive(Clone)]
pub struct Lango {
    pub(crate) tree: Arc<Tree>,
    pub(crate) runner: Runner,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) catalog: Option<Arc<dyn SessionCatalog>>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) user: UserId,
}

impl Lango {
    /// Returns a builder with the defaults: the agents of `specialists`, the built-in demo model `offline/rules`, no
    /// tools, sessions in memory, and every call that needs approval denied.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a session of the default user. Nothing is stored before its first turn.
    pub fn session(&self) -> Session {
        self.session_of(self.user.clone())
    }

    /// Starts a session of this user.
    pub fn session_of(&self, user: impl Into<UserId>) -> Session {
        let conversation = self.runner.start(user.into());
        Session::new(
            conversation,
            Arc::clone(&self.approver),
            Arc::clone(&self.store),
        )
    }

    /// Opens a stored session. This takes no lease and writes nothing; only running a turn does.
    ///
    /// # Errors
    /// The session does not exist or cannot be read.
    pub async fn open(&self, session: impl Into<SessionId>) -> Result<Session, Error> {
        let conversation = self.runner.open(session.into()).await?;
        Ok(Session::new(
            conversation,
            Arc::clone(&self.approver),
            Arc::clone(&self.store),
        ))
    }

    /// Returns the catalog, which lists, finds and renames sessions and shows pending approvals of all of them; `None` if the
    /// sessions are in a log or store of your own.
    pub fn catalog(&self) -> Option<&dyn SessionCatalog> {
        self.catalog.as_deref()
    }

    /// Returns the agents: which exist, which tools each owns, and what its instruction says.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the runner below this, for programs that drive conversations themselves.
    pub fn runner(&self) -> &Runner {
        &self.runner
    }
}

impl fmt::Debug for Lango {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents = self.tree.agents.iter().map(|agent| agent.name.as_str());
        f.debug_struct("Lango")
            .field("root", &self.tree.root.name)
            .field("agents", &agents.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
