//! The store of a run, with all its faces.

use crate::exit::Failure;
use crate::hold::Hold;
use lango_core::{SessionCatalog, SessionId, SessionStore, TaskStore};
use std::path::PathBuf;
use std::sync::Arc;

/// A store with both of its faces.
pub struct Sessions {
    /// For turns.
    pub store: Arc<dyn SessionStore>,
    /// For people.
    pub catalog: Arc<dyn SessionCatalog>,
    /// For callers from outside.
    pub tasks: Arc<dyn TaskStore>,
    /// The file, if there is one.
    pub(crate) database: Option<PathBuf>,
}

impl Sessions {
    /// Takes hold of a session, so that nobody else runs a turn in it meanwhile.
    pub fn hold(&self, session: &SessionId) -> Result<Option<Hold>, Failure> {
        let database = self.database.as_ref();
        database
            .map(|database| Hold::take(database, session))
            .transpose()
    }
}
