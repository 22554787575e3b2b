//! Sessions behind the seams.

use super::PostgresEngine;
use super::approvals::approvals;
use super::database::Values;
use super::failure::Failure;
use super::rows::{self, bound, limit};
use super::statements::{
    APPROVALS, COUNT_WAITING, EVENTS, EXISTS, GRANTS, HEAD, INSERT_SESSION, IS_NEW, REMOTE_THREAD,
    REVOKE, SESSIONS, SESSIONS_WITH_PREFIX, TURN_EVENTS, UNFINISHED,
};
use super::text::{Words, optional_words};
use crate::archive::must_be_kept;
use lango_core::{
    AgentName, ApprovalId, Approvals, Batch, BoxFuture, Event, Grant, Hold, NewSession, Page,
    Patience, RemoteThread, SessionCatalog, SessionHead, SessionId, SessionStore, SessionSummary,
    StoreError, Text, TurnId, UnfinishedTurn, UserId,
};
use tokio_postgres::Row;

impl PostgresEngine {
    /// Makes a session, whoever its user is.
    pub(crate) async fn make(&self, session: NewSession) -> Result<(), StoreError> {
        let (id, user) = (Words(session.id.as_str()), Words(session.user.as_str()));
        let created = bound(session.created.0);
        let values: Values<'_> = &[&id, &user, &created];
        let made = self.database.ask(INSERT_SESSION, values).await?;
        if !made.rows.is_empty() {
            return Ok(());
        }
        // An earlier try may have made it.
        let is_new = made.is_repeated && {
            let rows = self.database.query(IS_NEW, values).await?;
            self.values(&rows, is_so)? == [true]
        };
        match is_new {
            true => Ok(()),
            false => Err(StoreError::Exists { id: session.id }),
        }
    }
}

impl SessionStore for PostgresEngine {
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            must_be_kept(&session)?;
            self.make(session).await
        })
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionHead, StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let id = Words(session.as_str());
            let block = bound(SessionHead::BLOCK);
            let rows = self.database.query(HEAD, &[&id, &block]).await?;
            let head = rows::head(&rows, &session, &self.root_agent);
            let head = head.map_err(|failure| self.database.said(failure))?;
            let (head, end) = head.ok_or(StoreError::NotFound {
                id: session.clone(),
            })?;
            self.ends.remember(&session, end);
            Ok(head)
        })
    }

    fn hold(
        &self,
        session: &SessionId,
        patience: Patience,
    ) -> BoxFuture<'_, Result<Hold, StoreError>> {
        let session = session.clone();
        Box::pin(async move { self.holds.hold(&session, patience).await })
    }

    fn append(&self, events: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        let appender = self.appender();
        // As of when it was asked for: whoever gives the session up meanwhile must not be taken for nobody.
        let lease = events
            .first()
            .and_then(|event| self.leases().of(&event.session));
        Box::pin(async move {
            self.holds.keeper.start()?;
            // In a task of its own, so that what was begun is ended though nobody waits for it.
            let append = tokio::spawn(appender.append(events, lease));
            append.await.map_err(|error| StoreError::Failed {
                detail: format!("the runtime ended while events were appended: {error}"),
            })?
        })
    }

    fn read(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let id = Words(session.as_str());
            let values = (bound(page.from), limit(page.limit));
            let rows = self
                .database
                .query(EVENTS, &[&id, &values.0, &values.1])
                .await?;
            if rows.is_empty() {
                self.must_exist(&session).await?;
            }
            self.values(&rows, |row| rows::event(row, &session, &self.root_agent))
        })
    }

    fn turn_events(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let (session, turn) = (session.clone(), turn.clone());
        Box::pin(async move {
            let values = (Words(session.as_str()), Words(turn.as_str()));
            let rows = self
                .database
                .query(TURN_EVENTS, &[&values.0, &values.1])
                .await?;
            self.values(&rows, |row| rows::event(row, &session, &self.root_agent))
        })
    }

    fn grants(
        &self,
        session: &SessionId,
        folder: &str,
    ) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        let (session, folder) = (session.clone(), folder.to_owned());
        Box::pin(async move {
            let values = (Words(session.as_str()), Words(&folder));
            let rows = self.database.query(GRANTS, &[&values.0, &values.1]).await?;
            let approvals = approvals(&rows).map_err(|failure| self.database.said(failure))?;
            Ok(approvals.granted)
        })
    }

    fn remote_thread(
        &self,
        session: &SessionId,
        agent: &AgentName,
    ) -> BoxFuture<'_, Result<Option<RemoteThread>, StoreError>> {
        let (session, agent) = (session.clone(), agent.clone());
        Box::pin(async move {
            let values = (Words(session.as_str()), Words(agent.as_str()));
            let rows = self
                .database
                .query(REMOTE_THREAD, &[&values.0, &values.1])
                .await?;
            let thread = |row: &Row| {
                Ok(RemoteThread {
                    context: rows::text(row, 0)?,
                    task: optional_words(row, 1)?.map(Text::from),
                })
            };
            Ok(self.values(&rows, thread)?.pop())
        })
    }
}

impl SessionCatalog for PostgresEngine {
    fn list(
        &self,
        user: &UserId,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let user = user.clone();
        Box::pin(async move {
            let values = (Words(user.as_str()), limit(most));
            let rows = self
                .database
                .query(SESSIONS, &[&values.0, &values.1])
                .await?;
            self.values(&rows, rows::summary)
        })
    }

    fn find(
        &self,
        user: &UserId,
        prefix: &str,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let (user, prefix) = (user.clone(), prefix.to_owned());
        Box::pin(async move {
            let (user, prefix) = (Words(user.as_str()), Words(&prefix));
            let rows = self
                .database
                .query(SESSIONS_WITH_PREFIX, &[&user, &prefix, &limit(most)])
                .await?;
            self.values(&rows, rows::summary)
        })
    }

    fn approvals(&self, user: &UserId) -> BoxFuture<'_, Result<Approvals, StoreError>> {
        let user = user.clone();
        Box::pin(async move {
            let rows = self
                .database
                .query(APPROVALS, &[&Words(user.as_str())])
                .await?;
            approvals(&rows).map_err(|failure| self.database.said(failure))
        })
    }

    fn count_waiting(&self, user: &UserId) -> BoxFuture<'_, Result<usize, StoreError>> {
        let user = user.clone();
        Box::pin(async move {
            let values: Values<'_> = &[&Words(user.as_str())];
            let rows = self.database.query(COUNT_WAITING, values).await?;
            let count = self.values(&rows, |row| rows::unsigned(row, 0))?.pop();
            Ok(usize::try_from(count.unwrap_or(0)).unwrap_or(usize::MAX))
        })
    }

    fn unfinished(
        &self,
        after: Option<&SessionId>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<UnfinishedTurn>, StoreError>> {
        let after = after.map_or_else(String::new, ToString::to_string);
        Box::pin(async move {
            let (after, us) = (Words(&after), Words(&self.leases().holder));
            let rows = self
                .database
                .query(UNFINISHED, &[&after, &limit(most), &us])
                .await?;
            self.values(&rows, rows::unfinished)
        })
    }

    fn revoke(&self, user: &UserId, grant: &ApprovalId) -> BoxFuture<'_, Result<(), StoreError>> {
        let (user, grant) = (user.clone(), grant.clone());
        Box::pin(async move {
            let values = (Words(user.as_str()), Words(grant.as_str()));
            let revoked = self.database.ask(REVOKE, &[&values.0, &values.1]).await?;
            if revoked.rows.is_empty() && !revoked.is_repeated {
                return Err(StoreError::NotGranted { id: grant });
            }
            Ok(())
        })
    }
}

impl PostgresEngine {
    pub(super) async fn must_exist(&self, session: &SessionId) -> Result<(), StoreError> {
        let rows = self
            .database
            .query(EXISTS, &[&Words(session.as_str())])
            .await?;
        match self.values(&rows, is_so)?[..] {
            [true] => Ok(()),
            _ => Err(StoreError::NotFound {
                id: session.clone(),
            }),
        }
    }
}

/// The answer to a question.
fn is_so(row: &Row) -> Result<bool, Failure> {
    Ok(row.try_get(0)?)
}
