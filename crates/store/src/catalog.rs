//! Lists sessions, approvals, unfinished turns and model usage.

use crate::StoreFuture;
use crate::approvals::{self, APPROVALS, REVOKE};
use crate::archive::is_hidden;
use crate::backend::{Backend, Result, Row, Sql, records, sql, statements, values};
use crate::decode::not_found;
use crate::store::Store;
use lango_core::{
    ApprovalId, Approvals, MessageHit, MessageHits, MessageQuery, SessionCatalog, SessionId,
    SessionQuery, SessionStatus, SessionSummary, StoreError, UnfinishedTurn, UsageQuery, UsageRow,
    UserId,
};
use std::borrow::Cow;

/// The number of messages to read again after a page of a search had messages that do not contain the text.
const NEXT_SEARCH_PAGE: usize = 500;

impl SessionCatalog for Store {
    fn list(&self, user: &UserId, query: SessionQuery) -> StoreFuture<'_, Vec<SessionSummary>> {
        let search = query.search.as_deref().unwrap_or_default();
        let status = query.status.map_or("", status_name);
        let folder = query
            .folder
            .as_deref()
            .map(|folder| self.stored_text(folder));
        let folder: &str = folder.as_deref().unwrap_or_default();
        let (updated, id) = match &query.after {
            Some((updated, id)) => (updated.0, id.as_str()),
            None if search.is_empty() && status.is_empty() && folder.is_empty() => {
                return self
                    .backend
                    .query(SESSIONS, values![user, query.limit], summary);
            }
            None => (u64::MAX, ""),
        };
        let considered = SessionQuery::FOLDER_SESSIONS;
        let values = values![
            user,
            query.limit,
            search,
            updated,
            id,
            status,
            folder,
            considered
        ];
        self.backend.query(SOME_SESSIONS, values, summary)
    }

    fn search_messages(&self, user: &UserId, query: MessageQuery) -> StoreFuture<'_, MessageHits> {
        let values = values![user, query.sessions];
        let next = self.backend.query_opt(SESSION_AT, values, |_| Ok(()));
        let (user, stored) = (user.clone(), self.stored_text(&query.text).into_owned());
        let text = query.text.to_lowercase();
        Box::pin(async move {
            let mut messages = Vec::new();
            let (mut offset, mut limit) = (0, query.limit);
            loop {
                let values = values![user, query.sessions, stored, limit, offset];
                let page = self.backend.query(MESSAGES, values, message_hit).await?;
                let is_last = page.len() < limit;
                offset += page.len();
                // PostgreSQL also finds the letters of escapes, such as the `n` of a line break.
                let is_hit = |hit: &MessageHit| hit.text.to_lowercase().contains(&text);
                messages.extend(page.into_iter().filter(is_hit));
                if is_last || messages.len() >= query.limit {
                    break;
                }
                limit = NEXT_SEARCH_PAGE.max(query.limit);
            }
            messages.truncate(query.limit);
            Ok(MessageHits {
                messages,
                skipped_sessions: next.await?.is_some(),
            })
        })
    }

    fn rename(&self, user: &UserId, session: &SessionId, title: &str) -> StoreFuture<'_, ()> {
        let renamed = self.backend.execute(RENAME, values![user, session, title]);
        let session = session.clone();
        Box::pin(async move {
            match renamed.await? {
                0 => Err(not_found(&session)),
                _ => {
                    self.notify_session(&session);
                    Ok(())
                }
            }
        })
    }

    fn usage(&self, query: UsageQuery) -> StoreFuture<'_, Vec<UsageRow>> {
        let values = values![query.user, query.since.0, query.limit];
        self.backend.query(USAGE, values, |row| row.read())
    }

    fn find(
        &self,
        user: &UserId,
        prefix: &str,
        limit: usize,
    ) -> StoreFuture<'_, Vec<SessionSummary>> {
        let values = values![user, prefix, limit];
        self.backend.query(SESSIONS_WITH_PREFIX, values, summary)
    }

    fn approvals(&self, user: &UserId) -> StoreFuture<'_, Approvals> {
        self.backend.read(user.clone(), |tx, user| {
            Box::pin(async move { approvals::read(tx, APPROVALS, values![user]).await })
        })
    }

    fn unfinished(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<UnfinishedTurn>> {
        let after = after.map_or("", SessionId::as_str);
        let replica = match &self.backend {
            Backend::Sqlite(_) => "",
            Backend::Postgres(postgres) => postgres.replica(),
        };
        let values = values![after, limit, replica];
        self.backend.query(UNFINISHED, values, |row| row.read())
    }

    fn revoke(&self, user: &UserId, grant: &ApprovalId) -> StoreFuture<'_, ()> {
        let args = (user.clone(), grant.clone());
        self.backend.write_autocommit(args, |tx, (user, id)| {
            Box::pin(async move {
                if tx.execute(REVOKE, values![user, id]).await? == 0 && !tx.is_repeated() {
                    return Err(StoreError::NotGranted { id: id.clone() }.into());
                }
                Ok(())
            })
        })
    }
}

impl Store {
    /// Returns a text as it is compared with text in the body of an event. PostgreSQL compares the JSON, because its JSON
    /// operators reject an escaped U+0000.
    fn stored_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.backend {
            Backend::Sqlite(_) => Cow::Borrowed(text),
            Backend::Postgres(_) => {
                let quoted = serde_json::Value::from(text).to_string();
                Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
            }
        }
    }
}

/// Reads a column with a JSON string; `None` if it is null or damaged.
fn json_text(row: Row<'_>, column: usize) -> Result<Option<String>> {
    let quoted = row.get::<Option<Cow<'_, str>>>(column)?;
    Ok(quoted.and_then(|quoted| serde_json::from_str(&quoted).ok()))
}

fn message_hit(row: Row<'_>) -> Result<MessageHit> {
    Ok(MessageHit {
        session: row.get(0)?,
        title: row.lossy(1)?.into_owned(),
        seq: row.get(2)?,
        author: row.get(3)?,
        time: row.get(4)?,
        text: json_text(row, 5)?.unwrap_or_default(),
    })
}

fn summary(row: Row<'_>) -> Result<SessionSummary> {
    Ok(SessionSummary {
        // A session with an invalid id must not make the others unreadable.
        id: SessionId::new(row.lossy(0)?),
        user: UserId::new(row.lossy(1)?),
        title: row.lossy(2)?.into_owned(),
        created: row.get(3)?,
        updated: row.get(4)?,
        turns: row.get(5)?,
        events: row.get::<Option<u64>>(6)?.unwrap_or(0),
        status: status(&row.lossy(7)?),
        origin: row.get::<Option<Cow<'_, str>>>(8)?.map(Cow::into_owned),
        folder: json_text(row, 9)?,
    })
}

fn status(name: &str) -> SessionStatus {
    let known = [
        SessionStatus::Running,
        SessionStatus::Waiting,
        SessionStatus::Failed,
    ];
    let status = known
        .into_iter()
        .find(|status| status_name(*status) == name);
    status.unwrap_or(SessionStatus::Idle)
}

fn status_name(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Running => "running",
        SessionStatus::Waiting => "waiting",
        SessionStatus::Failed => "failed",
        SessionStatus::Idle => "idle",
    }
}

records! {
    UnfinishedTurn { session, user, turn, is_waiting }
    UsageRow { day, agent, model, calls, input_tokens, cached_tokens, output_tokens, cost_micros }
}

/// Expands to SQL for the [`SessionStatus`] of a session. It parses no JSON, because the event `turn.finished` always starts with
/// `{"type":"turn.finished","outcome":"`. The `LIMIT` keeps PostgreSQL from reading all approvals.
macro_rules! status {
    () => {
        r#"CASE (SELECT finished FROM turns WHERE turns.session = sessions.id ORDER BY ordinal DESC LIMIT 1)
           WHEN 0 THEN CASE WHEN (SELECT 1 FROM approvals
                                   WHERE approvals.session = sessions.id AND approvals.pattern IS NULL LIMIT 1) = 1
                       THEN 'waiting' ELSE 'running' END
           WHEN 1 THEN CASE WHEN (SELECT substr(body, 36, 8) FROM events
                                   WHERE events.session = sessions.id ORDER BY seq DESC LIMIT 1)
                                 IN ('answered', 'cancelle') THEN 'idle' ELSE 'failed' END
           ELSE 'idle' END"#
    };
}

/// Expands to SQL for the folder of a session's last turn: as text in SQLite, as the content of a JSON string in PostgreSQL.
/// Nothing that a user or a model wrote comes between these two settings, and quotes in texts are escaped, so the expression
/// cannot match a text.
macro_rules! folder {
    ($before:literal, $after:literal) => {
        concat!(
            "(SELECT ",
            $before,
            r#"/*sqlite CASE WHEN json_valid(body) THEN body ->> '$.settings.folder' END*/
               /*postgres substring(body from '"topology":"[^"]*","folder":"((?:[^"\\]|\\.)*)"')*/"#,
            $after,
            r#" FROM turns JOIN events ON events.session = turns.session AND events.seq = turns.question_seq
              WHERE turns.session = sessions.id ORDER BY turns.ordinal DESC LIMIT 1)"#
        )
    };
}

/// Expands to a query for the columns that [`summary`] reads.
macro_rules! summaries {
    ($($rest:expr),+) => {
        concat!(
            r#"SELECT id, "user", title, created, updated,
            (SELECT coalesce(max(ordinal) + 1, 0) FROM turns WHERE turns.session = sessions.id),
            (SELECT seq FROM events WHERE events.session = sessions.id ORDER BY seq DESC LIMIT 1), "#,
            status!(),
            r#",
            (SELECT /*sqlite CASE WHEN json_valid(body) THEN body ->> '$.origin.kind' END*/
                    /*postgres substring(body from '"origin":\{"kind":"([a-z]+)"')*/
               FROM events WHERE events.session = sessions.id AND events.seq = 1), "#,
            folder!(
                "/*sqlite json_quote(*/ /*postgres '\"' ||*/ ",
                " /*sqlite )*/ /*postgres || '\"'*/"
            ),
            r#" FROM sessions WHERE "user" = $1"#,
            $($rest),+
        )
    };
}

/// Selects a page of a user's sessions after the cursor (`$4`, `$5`), filtered by text (`$3`), status (`$6`) and, among the `$8`
/// most recently used ones, folder (`$7`). An empty filter matches all. PostgreSQL may read and sort all sessions of the user.
const SOME_SESSIONS: Sql = sql!(summaries!(
    r#" AND updated <= $4 AND (updated < $4 OR id > $5)
            AND ($3 = '' OR id = $3 OR /*sqlite instr*/ /*postgres strpos*/(lower(title), lower($3)) > 0)
            AND ($6 = '' OR $6 = "#,
    status!(),
    r#") AND ($7 = '' OR (updated >= coalesce((SELECT recent.updated FROM sessions AS recent WHERE recent."user" = $1
            ORDER BY recent.updated DESC, recent.id LIMIT 1 OFFSET $8::bigint - 1), 0) AND "#,
    folder!("", ""),
    " = $7)) ORDER BY updated DESC, id LIMIT $2"
));

/// Selects the questions and answers with a text (`$3`) in the `$2` most recently used sessions of a user.
const MESSAGES: Sql = sql!(
    sqlite: r#"SELECT id, title, seq, author, time, json_quote(text)
       FROM (SELECT recent.id, recent.title, recent.updated, events.seq, events.author, events.time,
                    CASE WHEN json_valid(events.body)
                         THEN coalesce(events.body ->> '$.text', events.body ->> '$.output') END AS text
               FROM (SELECT id, title, updated FROM sessions WHERE user = ?1
                      ORDER BY updated DESC, id LIMIT ?2) AS recent
               JOIN turns ON turns.session = recent.id
               JOIN events ON events.session = turns.session
                          AND events.seq IN (turns.question_seq, turns.answer_seq))
      WHERE instr(lower(text), lower(?3)) > 0
      ORDER BY updated DESC, id, seq DESC LIMIT ?4 OFFSET ?5"#,
    postgres: r#"SELECT id, title, seq, author, time, '"' || text || '"'
       FROM (SELECT recent.id, recent.title, recent.updated, said.seq, said.author, said.time,
                    substring(said.body from '"(?:text|output)":"((?:[^"\\]|\\.)*)"') AS text
               FROM (SELECT id, title, updated FROM sessions WHERE "user" = $1
                      ORDER BY updated DESC, id LIMIT $2) AS recent
               JOIN turns ON turns.session = recent.id
               JOIN LATERAL (SELECT seq, author, time, body FROM events
                              WHERE events.session = turns.session
                                AND events.seq IN (turns.question_seq, turns.answer_seq)
                              LIMIT 2) AS said ON true) AS messages
      WHERE strpos(lower(text), lower($3)) > 0
      ORDER BY updated DESC, id, seq DESC LIMIT $4 OFFSET $5"#
);

/// Selects the usage of a user's model calls since `$2`. It reads the events of all sessions used since then.
const USAGE: Sql = sql!(
    sqlite: r#"SELECT time / 86400000, author, model, count(*), sum(input), sum(cached), sum(output),
            CASE WHEN count(*) = count(cost) THEN sum(cost) END
       FROM (SELECT events.time, events.author, coalesce(events.body ->> '$.model', '') AS model,
                    coalesce(events.body ->> '$.usage.input_tokens', 0) AS input,
                    coalesce(events.body ->> '$.usage.cached_tokens', 0) AS cached,
                    coalesce(events.body ->> '$.usage.output_tokens', 0) AS output,
                    events.body ->> '$.cost_micros' AS cost
               FROM sessions JOIN events ON events.session = sessions.id
              WHERE sessions."user" = ?1 AND sessions.updated >= ?2 AND events.time >= ?2
                AND events.body LIKE '{"type":"agent.message",%' AND json_valid(events.body)) AS calls
      WHERE model <> ''
      GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT ?3"#,
    // PostgreSQL's JSON operators reject text with an escaped U+0000, so regular expressions find the fields. They cannot match
    // inside a string, because quotes are escaped there.
    postgres: r#"SELECT time / 86400000, author, model, count(*), sum(input)::bigint, sum(cached)::bigint,
            sum(output)::bigint, CASE WHEN count(*) = count(cost) THEN sum(cost)::bigint END
       FROM (SELECT events.time, events.author,
                    substring(events.body from '"final":(?:true|false),"model":"([^"]*)","usage":') AS model,
                    substring(events.body from '"usage":\{"input_tokens":([0-9]+)')::bigint AS input,
                    substring(events.body from '"cached_tokens":([0-9]+)')::bigint AS cached,
                    substring(events.body from '"output_tokens":([0-9]+)')::bigint AS output,
                    substring(events.body from '"reasoning_tokens":[0-9]+\},"cost_micros":([0-9]+)')::bigint AS cost
               FROM sessions JOIN events ON events.session = sessions.id
              WHERE sessions."user" = $1 AND sessions.updated >= $2 AND events.time >= $2
                AND events.body LIKE '{"type":"agent.message",%') AS calls
      WHERE model <> ''
      GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT $3"#
);

statements! {
    SESSIONS: summaries!(" ORDER BY updated DESC, id LIMIT $2");

    /// Selects the session after the `$2` most recently used ones of a user.
    SESSION_AT: r#"SELECT 1 FROM sessions WHERE "user" = $1 ORDER BY updated DESC, id LIMIT 1 OFFSET $2"#;

    RENAME: r#"UPDATE sessions SET title = $3 WHERE id = $2 AND "user" = $1"#;

    /// Selects sessions by a prefix of their id, as a range from the prefix to the greatest id that starts with it.
    SESSIONS_WITH_PREFIX: summaries!(" AND id >= $2 AND id <= $2 || /*sqlite char(1114111)*/ /*postgres chr(1114111)*/ ORDER BY id LIMIT $3");

    /// Selects unfinished turns of sessions after `$1`, except sessions that a replica other than `$3` has leased.
    UNFINISHED: concat!(
        r#"SELECT turns.session, sessions."user", turns.turn,
            EXISTS (SELECT 1 FROM approvals
                     WHERE approvals.session = turns.session AND approvals.turn = turns.turn
                       AND approvals.pattern IS NULL)
       FROM turns JOIN sessions ON sessions.id = turns.session
      WHERE turns.finished = 0 AND turns.session > $1 AND $3::text IS NOT NULL AND NOT ("#,
        is_hidden!(),
        r#") /*postgres AND NOT EXISTS (SELECT FROM holds
                         WHERE holds.session = turns.session AND holds.until > clock_timestamp()
                           AND holds.holder <> $3)*/
      ORDER BY turns.session LIMIT $2"#
    );
}
