//! Imports exported sessions. The file is untrusted: every line is checked before it is stored, and a session becomes
//! visible only when its last event has been stored. The next attempt replaces what a killed process left behind.

mod attachments;
mod lines;
mod unfinished_turn;

use crate::app::App;
use crate::app::failure::Failure;
use attachments::SeenAttachments;
use lango_core::text::{count, one_line};
use lango_core::{
    AttachmentStore, BoxLease, BusyPolicy, EventRange, NewSession, SessionId, SessionStore,
    StoreError, UserId,
};
use lango_store::archive::line::{self, AttachmentLine, Line};
use lango_store::archive::{LogRow, ROWS_PER_PAGE, SessionRecord, remove_hidden};
use lango_store::{LogVerifier, Store};
use lines::ImportLines;
use std::collections::BTreeMap;
use std::path::Path;

/// Rows are stored in batches of at most this many bytes.
const BATCH_BYTES: usize = 4 << 20;

/// Shows how far an import is.
pub trait ImportProgress: Send {
    /// A line was read, and this many sessions have been imported.
    fn line_read(&mut self, number: u64, imported: u64);

    /// A session was imported or left as it is, as `result` says.
    fn session_done(&mut self, id: &SessionId, result: &str) -> Result<(), Failure>;
}

/// Imports the sessions of a file, or of standard input if it is `-`. Returns a summary.
///
/// # Errors
/// The first invalid line. Sessions before it stay imported; nothing of its own session does.
pub async fn import(
    app: &App,
    file: &Path,
    skip_existing: bool,
    progress: &mut dyn ImportProgress,
) -> Result<String, Failure> {
    let store = &app.storage.database;
    let name = if file.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        format!("`{}`", file.display())
    };
    let mut lines = ImportLines::open(file)?;
    let mut import = Import {
        app,
        store,
        skip_existing,
        report: Report::default(),
        current: None,
        progress,
        own: app.users(),
    };
    match import.read_all(&mut lines).await {
        Ok(()) => import.report.summary().ok_or_else(|| {
            Failure::usage(format!("there is no session in {name}"))
                .next("`lango sessions export` writes files that can be imported")
        }),
        Err(error) => Err(import.abort(error, &name, lines.number()).await),
    }
}

/// Why an import failed.
enum ImportError {
    /// A line is invalid.
    Line(String),
    /// A session already exists with a different log.
    Conflict(SessionId),
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for ImportError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

#[derive(Default)]
struct Report {
    imported: u64,
    events: u64,
    same: u64,
    skipped: u64,
    grants: u64,
    closed: u64,
    /// Users whose imported sessions are not visible with this configuration, each with the number of sessions.
    hidden: BTreeMap<UserId, u64>,
}

/// How many users with hidden sessions the summary names.
const MAX_NAMED: usize = 5;

impl Report {
    /// Summarizes the import; `None` if the file had no session.
    fn summary(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.imported > 0 {
            let (sessions, events) = (count(self.imported, "session"), count(self.events, "event"));
            parts.push(format!("imported {sessions}, {events}"));
        }
        if self.same > 0 {
            parts.push(format!(
                "{} already here and identical",
                count(self.same, "session")
            ));
        }
        if self.skipped > 0 {
            parts.push(format!(
                "{} already here with a different log, left unchanged",
                count(self.skipped, "session")
            ));
        }
        if self.closed > 0 {
            let turns = count(self.closed, "turn");
            parts.push(format!("{turns} without an outcome closed as interrupted"));
        }
        if self.grants > 0 {
            let answers = count(self.grants, "answer");
            parts.push(format!(
                "{answers} for future calls left out; lango asks again"
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; ") + &self.describe_hidden())
    }

    /// Describes the imported sessions that `lango sessions list` does not show with this configuration, and how to
    /// see them.
    fn describe_hidden(&self) -> String {
        let named = self.hidden.iter().take(MAX_NAMED);
        let mut lines: String = named
            .map(|(user, sessions)| {
                let user = one_line(user.as_str(), 100);
                let sessions = count(*sessions, "session");
                format!(
                    "\n  {sessions} of user `{user}`: lango -c 'session.user={user}' sessions list"
                )
            })
            .collect();
        if self.hidden.len() > MAX_NAMED {
            lines.push_str(&format!(
                "\n  and sessions of {} more users",
                self.hidden.len() - MAX_NAMED
            ));
        }
        lines
    }
}

struct Incoming {
    record: SessionRecord,
    chain: LogVerifier,
    kind: Kind,
    rows: Vec<LogRow>,
    bytes: usize,
    attachments: SeenAttachments,
    _lease: BoxLease,
}

enum Kind {
    /// The session does not exist yet.
    New,
    /// The session exists, and the lines read so far are identical.
    Same,
    /// The session exists with a different log and is left unchanged.
    Skipped,
}

struct Import<'a> {
    app: &'a App,
    store: &'a Store,
    skip_existing: bool,
    report: Report,
    current: Option<Incoming>,
    progress: &'a mut dyn ImportProgress,
    /// The users whose sessions are visible with this configuration.
    own: Vec<UserId>,
}

impl Import<'_> {
    async fn read_all(&mut self, lines: &mut ImportLines) -> Result<(), ImportError> {
        while let Some(text) = lines.next().await {
            let text = text.map_err(ImportError::Line)?;
            match line::parse(&text).map_err(ImportError::Line)? {
                Line::Session(record) => {
                    self.finish().await?;
                    self.start_session(record).await?;
                }
                Line::Event(row) => self.add_event(row).await?,
                Line::Attachment(attachment) => self.add_attachment(attachment).await?,
            }
            let (number, sessions) = (lines.number(), self.report.imported);
            self.progress.line_read(number, sessions);
        }
        self.finish().await
    }

    async fn start_session(&mut self, record: SessionRecord) -> Result<(), ImportError> {
        let lease = self.store.acquire(&record.id, BusyPolicy::Refuse).await?;
        let kind = match self.store.session_record(&record.id).await {
            Err(StoreError::NotFound { .. }) => {
                remove_hidden(self.store, &record.id).await?;
                let session = NewSession {
                    id: record.id.clone(),
                    user: record.user.clone(),
                    created: record.created,
                };
                self.store.start_import(session).await?;
                Kind::New
            }
            Ok(there) => match (
                self.is_continued_by_stored(&there, &record).await?,
                self.skip_existing,
            ) {
                (true, _) => Kind::Same,
                (false, true) => Kind::Skipped,
                (false, false) => return Err(ImportError::Conflict(record.id)),
            },
            Err(error) => return Err(error.into()),
        };
        self.current = Some(Incoming {
            chain: LogVerifier::new(&record.id),
            record,
            kind,
            rows: Vec::new(),
            bytes: 0,
            attachments: SeenAttachments::default(),
            _lease: lease,
        });
        Ok(())
    }

    /// Returns whether the stored session is the same as the one being read, possibly with later events.
    async fn is_continued_by_stored(
        &self,
        there: &SessionRecord,
        read: &SessionRecord,
    ) -> Result<bool, ImportError> {
        if (&there.user, there.created) != (&read.user, read.created) || there.events < read.events
        {
            return Ok(false);
        }
        if there.events == read.events {
            return Ok(there.hash == read.hash);
        }
        let last = EventRange {
            from: read.events,
            limit: 1,
        };
        let last = self.store.log_rows(&read.id, last).await?;
        Ok(last.first().is_some_and(|last| last.hash == read.hash))
    }

    async fn add_event(&mut self, row: LogRow) -> Result<(), ImportError> {
        let Some(current) = &mut self.current else {
            let detail = "an event comes before the line of its session";
            return Err(ImportError::Line(detail.to_owned()));
        };
        if current.chain.count() == current.record.events {
            let events = count(current.record.events, "event");
            let detail = format!("session `{}` should end after {events}", current.record.id);
            return Err(ImportError::Line(detail));
        }
        let body = current
            .chain
            .verify(&row)
            .map_err(|error| ImportError::Line(error.to_string()))?;
        current
            .attachments
            .check_event(&body)
            .map_err(ImportError::Line)?;
        match current.kind {
            Kind::Skipped => {}
            // With hashes, comparing the last one is enough, because it covers all rows before it.
            Kind::Same if !row.hash.is_empty() => {}
            Kind::Same => {
                let page = EventRange {
                    from: row.seq,
                    limit: 1,
                };
                let stored = self.store.log_rows(&row.session, page).await?;
                if stored.first() != Some(&row) {
                    return Err(ImportError::Conflict(row.session));
                }
            }
            Kind::New => {
                current.bytes += row.body.len();
                current.rows.push(row);
                if current.rows.len() >= ROWS_PER_PAGE || current.bytes >= BATCH_BYTES {
                    current.bytes = 0;
                    self.store
                        .import_rows(std::mem::take(&mut current.rows))
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// Stores the bytes of an attachment before the event that refers to them. If no event follows, they expire
    /// automatically.
    async fn add_attachment(&mut self, attachment: AttachmentLine) -> Result<(), ImportError> {
        let Some(current) = &mut self.current else {
            let detail = "an attachment comes before the line of its session";
            return Err(ImportError::Line(detail.to_owned()));
        };
        let added = current.attachments.add(&current.record, &attachment);
        added.map_err(ImportError::Line)?;
        if matches!(current.kind, Kind::New) {
            let user = &current.record.user;
            AttachmentStore::put(self.store, user, attachment.bytes).await?;
        }
        Ok(())
    }

    /// Completes the session that was being read, or fails if it is incomplete.
    async fn finish(&mut self) -> Result<(), ImportError> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        current.attachments.finish().map_err(ImportError::Line)?;
        let record = &current.record;
        let there = current.chain.count();
        if there != record.events {
            return Err(ImportError::Line(format!(
                "session `{}` has {} in the file, {} are missing",
                record.id,
                count(there, "event"),
                record.events - there
            )));
        }
        if current.chain.hash() != record.hash {
            let detail = format!(
                "session `{}` does not end with the expected hash",
                record.id
            );
            return Err(ImportError::Line(detail));
        }
        let id = record.id.clone();
        let detail = match current.kind {
            Kind::New => {
                self.store
                    .import_rows(std::mem::take(&mut current.rows))
                    .await?;
                self.report.grants += self.store.finish_import(record.clone()).await?;
                self.report.closed +=
                    u64::from(unfinished_turn::close(self.app, &record.id).await?);
                self.report.imported += 1;
                if !self.own.contains(&record.user) {
                    *self.report.hidden.entry(record.user.clone()).or_default() += 1;
                }
                self.report.events += record.events;
                format!("{}, imported", count(record.events, "event"))
            }
            Kind::Same => {
                self.report.same += 1;
                "already here and identical".to_owned()
            }
            Kind::Skipped => {
                self.report.skipped += 1;
                "already here with a different log; left unchanged".to_owned()
            }
        };
        self.current = None;
        Ok(self.progress.session_done(&id, &detail)?)
    }

    /// Removes the incomplete session, and returns the failure with what was and was not imported.
    async fn abort(&mut self, error: ImportError, name: &str, line: u64) -> Failure {
        let mut untouched = "nothing of it was imported".to_owned();
        if let Some(current) = self.current.take() {
            let id = &current.record.id;
            if matches!(current.kind, Kind::New) {
                // If this fails, the leftover stays hidden, and the next attempt replaces it.
                let _ = remove_hidden(self.store, id).await;
            }
            untouched = format!("nothing of session `{id}` was imported");
        }
        if self.report.imported > 0 {
            let before = count(self.report.imported, "session");
            untouched = format!("{untouched}; {before} before it imported completely");
        }
        match error {
            ImportError::Line(detail) => {
                let message = format!("{name}, line {line}: {detail}");
                Failure::usage(message)
                    .next(format!("{untouched}; export it again from its source"))
            }
            ImportError::Conflict(id) => {
                let message = format!(
                    "{name}, line {line}: session `{id}` already exists with a different log"
                );
                Failure::usage(message).next(format!(
                    "{untouched}; use --skip-existing to leave it unchanged and continue"
                ))
            }
            ImportError::Failed(failure) => failure.at(&format!("{name}, line {line}")),
        }
    }
}

/// Returns the failure for a file that cannot be opened or read.
fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    let message = format!("`{}` cannot be read: {error}", file.display());
    Failure::usage(message).next("lango sessions import FILE")
}
