//! Sessions that are to be gone: hidden first, then removed from every table a bounded part at a time.

use super::statements::{
    COLLECTION_OF_SESSION, CONTEXTS, DELETE_COLLECTION, DELETE_MANY, DELETE_OLD_HOLDS,
    DELETE_OLD_LINES, DELETE_OLD_TASKS, DELETE_SESSION, DELETE_SMALL, DELETE_TASKS, DELETE_TURNS,
    EXPIRED, HIDDEN_USER, HIDE,
};
use crate::archive::{Expired, Removing, Wiped, hidden_user};
use crate::engine::Tx;
use crate::library::remove_document;
use crate::postgres::PostgresEngine;
use crate::postgres::asking::{execute, row, rows};
use crate::postgres::attachments;
use crate::postgres::database::Values;
use crate::postgres::failure::Failure;
use crate::postgres::rows::{bound, limit, text};
use crate::postgres::text::{Words, words};
use deadpool_postgres::Transaction;
use lango_core::{BoxFuture, SessionId, StoreError, Text, Timestamp, UserId};

/// How many rows one step removes.
const REMOVED_AT_ONCE: usize = 500;

impl Removing for PostgresEngine {
    fn hide(
        &self,
        session: &SessionId,
        unused_since: Option<Timestamp>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let session = session.clone();
        let since = unused_since.map(|time| bound(time.0));
        let fence = self.leases().of(&session).map(|lease| lease.fence);
        Box::pin(async move {
            let values: Values<'_> = &[&Words(session.as_str()), &since, &fence];
            let answer = self.database.ask(HIDE, values).await?;
            let found = self.values(&answer.rows, |row| {
                Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
            })?;
            match found[..] {
                [(true, _, _)] => Ok(true),
                // An earlier try may have hidden it.
                [(_, true, _)] => Ok(answer.is_repeated),
                [(_, _, false)] => Err(StoreError::Lost { id: session }),
                _ => Ok(false),
            }
        })
    }

    fn remove_some(&self, session: &SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        let session = Text::from(session.as_str());
        let removed = self.repeatable_change(session, |transaction, session| {
            Box::pin(remove_some(transaction, session))
        });
        Box::pin(async move {
            let is_removed = removed.await?;
            if is_removed {
                self.delete_expired_puts().await?;
            }
            Ok(is_removed)
        })
    }

    fn hidden(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let user = hidden_user(user);
        let after = after.map_or_else(String::new, ToString::to_string);
        Box::pin(async move { self.ids_of(&user, &after, limit).await })
    }

    fn expired(
        &self,
        user: &UserId,
        unused_since: Timestamp,
        page: Expired,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let user = user.clone();
        Box::pin(async move {
            let values: Values<'_> = &[
                &Words(user.as_str()),
                &bound(unused_since.0),
                &limit(page.limit),
                &limit(page.skip),
            ];
            let rows = self.database.query(EXPIRED, values).await?;
            self.values(&rows, |row| Ok(SessionId::new(text(row, 0)?)))
        })
    }

    fn remove_tasks(
        &self,
        user: &UserId,
        before: Timestamp,
        most: usize,
    ) -> BoxFuture<'_, Result<u64, StoreError>> {
        let given = (user.clone(), bound(before.0), limit(most));
        self.repeatable_change(given, |transaction, (user, before, most)| {
            Box::pin(async move {
                let values: Values<'_> = &[&Words(user.as_str()), before, most];
                execute(transaction, DELETE_OLD_TASKS, values).await
            })
        })
    }

    fn wipe(&self) -> BoxFuture<'_, Result<Wiped, StoreError>> {
        Box::pin(async {
            while self.remove_old_holds().await? > 0 {}
            while self.delete_expired_puts().await? > 0 {}
            // The rest the server does by itself, while others go on.
            Ok(Wiped::LeftToServer)
        })
    }
}

impl PostgresEngine {
    fn remove_old_holds(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.repeatable_change(limit(REMOVED_AT_ONCE), |transaction, most| {
            Box::pin(async move {
                let holds = execute(transaction, DELETE_OLD_HOLDS, &[most]).await?;
                Ok(holds + execute(transaction, DELETE_OLD_LINES, &[most]).await?)
            })
        })
    }
}

async fn remove_some(transaction: &Transaction<'_>, session: &str) -> Result<bool, Failure> {
    let id = Words(session);
    let Some(hidden) = row(transaction, HIDDEN_USER, &[&id]).await? else {
        return Ok(true);
    };
    let user = words(&hidden, 0)?;
    if remove_library(transaction, id).await?
        || attachments::remove_some(transaction, &user, id).await?
        || remove_turns(transaction, &user, id).await?
    {
        return Ok(false);
    }
    for statement in DELETE_MANY {
        if execute(transaction, statement, &[&id, &limit(REMOVED_AT_ONCE)]).await? > 0 {
            return Ok(false);
        }
    }
    for statement in DELETE_SMALL {
        execute(transaction, statement, &[&id]).await?;
    }
    execute(transaction, DELETE_SESSION, &[&id]).await?;
    Ok(true)
}

/// Removes a part of what only this session could search; says whether there was any.
async fn remove_library(
    transaction: &Transaction<'_>,
    session: Words<'_>,
) -> Result<bool, Failure> {
    let Some(found) = row(transaction, COLLECTION_OF_SESSION, &[&session]).await? else {
        return Ok(false);
    };
    match found.try_get::<_, Option<i64>>(2)? {
        Some(document) => {
            let user = UserId::from(&*words(&found, 1)?);
            remove_document(&mut Tx::transaction(transaction), &user, document).await?;
        }
        None => {
            let collection: i64 = found.try_get(0)?;
            execute(transaction, DELETE_COLLECTION, &[&collection]).await?;
        }
    }
    Ok(true)
}

/// Removes some turns, or before them the tasks that they and their neighbours were; says whether there were any.
async fn remove_turns(
    transaction: &Transaction<'_>,
    user: &str,
    session: Words<'_>,
) -> Result<bool, Failure> {
    let (user, most) = (Words(user), limit(REMOVED_AT_ONCE));
    let contexts = rows(transaction, CONTEXTS, &[&session, &user, &most]).await?;
    let removed = match contexts.first() {
        Some(context) => {
            let context = words(context, 0)?;
            let values: Values<'_> = &[&user, &Words(&context), &most];
            execute(transaction, DELETE_TASKS, values).await?
        }
        None => execute(transaction, DELETE_TURNS, &[&session, &most]).await?,
    };
    Ok(removed > 0)
}
