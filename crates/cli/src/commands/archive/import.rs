//! Taking in sessions that were exported. The file is nobody's word: every line is checked before it is stored, and a session
//! is seen when the last of its events is there. What a process that was killed left behind is replaced by the next try.

mod attachments;
mod closing;
mod lines;

use crate::app::App;
use crate::args::ImportArguments;
use crate::exit::{Exit, Failure};
use crate::screen::{self, Ticker, count, one_line};
use attachments::GivenAttachments;
use lango_core::{
    AttachmentStore, BoxLease, BusyPolicy, NewSession, Page, SessionId, SessionStore, StoreError,
    UserId,
};
use lango_store::archive::line::{self, AttachmentLine, Line};
use lango_store::archive::{LogRow, ROWS_AT_ONCE, SessionRecord, remove_hidden};
use lango_store::{Chain, Store};
use lines::Lines;
use std::collections::BTreeMap;
use std::path::Path;

/// After how many bytes rows are stored, however few they are.
const BATCH_BYTES: usize = 4 << 20;

/// Runs the command.
pub async fn import(app: &App, arguments: ImportArguments) -> Result<(), Failure> {
    let store = &app.kept.database;
    let name = match arguments.file.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => format!("`{}`", arguments.file.display()),
    };
    let mut lines = Lines::open(&arguments.file)?;
    let mut intake = Import {
        app,
        store,
        skip_existing: arguments.skip_existing,
        report: Report::default(),
        current: None,
        ticker: Ticker::new(),
        own: app.users(),
    };
    let done = intake.all(&mut lines).await;
    intake.ticker.clear();
    let done = match done {
        Ok(()) => intake.report.summary(),
        Err(wrong) => {
            let failure = intake.give_up(wrong, &name, lines.number()).await;
            return Err(failure);
        }
    };
    match done {
        Some(summary) => screen::say(&summary),
        None => {
            let message = format!("there is no session in {name}");
            return Err(Failure::new(Exit::Usage, message)
                .next("`lango sessions export` writes what can be imported"));
        }
    }
    Ok(())
}

/// Why a file is not taken in.
enum Wrong {
    /// A line of it is not what it should be.
    Line(String),
    /// A session is here already, with another log.
    Other(SessionId),
    /// Something else.
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

#[derive(Default)]
struct Report {
    imported: u64,
    events: u64,
    same: u64,
    left: u64,
    grants: u64,
    closed: u64,
    /// Whose sessions came that are not seen with this configuration, and how many of each.
    others: BTreeMap<UserId, u64>,
}

/// How many users are named whose sessions came.
const NAMED: usize = 5;

impl Report {
    /// What came of it; nothing if there was nothing.
    fn summary(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.imported > 0 {
            let (sessions, events) = (count(self.imported, "session"), count(self.events, "event"));
            parts.push(format!("imported {sessions}, {events}"));
        }
        if self.same > 0 {
            parts.push(format!(
                "{} here already, the same",
                count(self.same, "session")
            ));
        }
        if self.left > 0 {
            parts.push(format!(
                "{} here already with another log, left as they are",
                count(self.left, "session")
            ));
        }
        if self.closed > 0 {
            let turns = count(self.closed, "turn");
            parts.push(format!("{turns} not at the end closed as interrupted"));
        }
        if self.grants > 0 {
            let answers = count(self.grants, "answer");
            parts.push(format!(
                "{answers} for calls to come left out; they are asked for again"
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; ") + &self.unseen())
    }

    /// Whose sessions came that `lango sessions list` does not show here, and how to see them.
    fn unseen(&self) -> String {
        let named = self.others.iter().take(NAMED);
        let mut lines: String = named
            .map(|(user, sessions)| {
                let user = one_line(user.as_str(), 100);
                let sessions = count(*sessions, "session");
                format!(
                    "\n  {sessions} of user `{user}`: lango -c 'session.user={user}' sessions list"
                )
            })
            .collect();
        if self.others.len() > NAMED {
            lines.push_str(&format!(
                "\n  and of {} more users",
                self.others.len() - NAMED
            ));
        }
        lines
    }
}

/// The session whose lines are being read.
struct Incoming {
    record: SessionRecord,
    chain: Chain,
    kind: Kind,
    rows: Vec<LogRow>,
    bytes: usize,
    attachments: GivenAttachments,
    _hold: BoxLease,
}

enum Kind {
    /// It is not here yet.
    New,
    /// It is here, by all that was read so far the same.
    Same,
    /// It is here with another log, and left as it is.
    Left,
}

struct Import<'a> {
    app: &'a App,
    store: &'a Store,
    skip_existing: bool,
    report: Report,
    current: Option<Incoming>,
    ticker: Ticker,
    /// Whose sessions are seen with this configuration.
    own: Vec<UserId>,
}

impl Import<'_> {
    async fn all(&mut self, lines: &mut Lines) -> Result<(), Wrong> {
        while let Some(text) = lines.next().await {
            let text = text.map_err(Wrong::Line)?;
            match line::read(&text).map_err(Wrong::Line)? {
                Line::Session(record) => {
                    self.finish().await?;
                    self.begin(record).await?;
                }
                Line::Event(row) => self.take(row).await?,
                Line::Attachment(attachment) => self.take_attachment(attachment).await?,
            }
            let (number, sessions) = (lines.number(), self.report.imported);
            self.ticker
                .show(|| format!("line {number}, {} imported", count(sessions, "session")));
        }
        self.finish().await
    }

    async fn begin(&mut self, record: SessionRecord) -> Result<(), Wrong> {
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
            Ok(there) => match (self.begins_as(&there, &record).await?, self.skip_existing) {
                (true, _) => Kind::Same,
                (false, true) => Kind::Left,
                (false, false) => return Err(Wrong::Other(record.id)),
            },
            Err(error) => return Err(error.into()),
        };
        self.current = Some(Incoming {
            chain: Chain::of(&record.id),
            record,
            kind,
            rows: Vec::new(),
            bytes: 0,
            attachments: GivenAttachments::default(),
            _hold: lease,
        });
        Ok(())
    }

    /// Whether what is here is what is read, or began as it and went on since.
    async fn begins_as(&self, there: &SessionRecord, read: &SessionRecord) -> Result<bool, Wrong> {
        if (&there.user, there.created) != (&read.user, read.created) || there.events < read.events
        {
            return Ok(false);
        }
        if there.events == read.events {
            return Ok(there.hash == read.hash);
        }
        let last = Page {
            from: read.events,
            limit: 1,
        };
        let last = self.store.log_rows(&read.id, last).await?;
        Ok(last.first().is_some_and(|last| last.hash == read.hash))
    }

    async fn take(&mut self, row: LogRow) -> Result<(), Wrong> {
        let Some(current) = &mut self.current else {
            let said = "there is an event before the line of its session";
            return Err(Wrong::Line(said.to_owned()));
        };
        if current.chain.count() == current.record.events {
            let events = count(current.record.events, "event");
            let said = format!("session `{}` should end after {events}", current.record.id);
            return Err(Wrong::Line(said));
        }
        let body = current
            .chain
            .take(&row)
            .map_err(|error| Wrong::Line(error.to_string()))?;
        current.attachments.refer(&body).map_err(Wrong::Line)?;
        match current.kind {
            Kind::Left => {}
            // Where there are hashes, the last one stands for all before it.
            Kind::Same if !row.hash.is_empty() => {}
            Kind::Same => {
                let page = Page {
                    from: row.seq,
                    limit: 1,
                };
                let stored = self.store.log_rows(&row.session, page).await?;
                if stored.first() != Some(&row) {
                    return Err(Wrong::Other(row.session));
                }
            }
            Kind::New => {
                current.bytes += row.body.len();
                current.rows.push(row);
                if current.rows.len() >= ROWS_AT_ONCE || current.bytes >= BATCH_BYTES {
                    current.bytes = 0;
                    self.store
                        .import_rows(std::mem::take(&mut current.rows))
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// Stores the bytes of an attachment before the event that refers to them. If none comes, they expire by themselves.
    async fn take_attachment(&mut self, attachment: AttachmentLine) -> Result<(), Wrong> {
        let Some(current) = &mut self.current else {
            let said = "there is an attachment before the line of its session";
            return Err(Wrong::Line(said.to_owned()));
        };
        let given = current.attachments.give(&current.record, &attachment);
        given.map_err(Wrong::Line)?;
        if matches!(current.kind, Kind::New) {
            let user = &current.record.user;
            AttachmentStore::put(self.store, user, attachment.bytes).await?;
        }
        Ok(())
    }

    /// The session whose lines were read is whole, or it is not.
    async fn finish(&mut self) -> Result<(), Wrong> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        current.attachments.finish().map_err(Wrong::Line)?;
        let record = &current.record;
        let there = current.chain.count();
        if there != record.events {
            return Err(Wrong::Line(format!(
                "session `{}` has {} here, {} are missing",
                record.id,
                count(there, "event"),
                record.events - there
            )));
        }
        if current.chain.hash() != record.hash {
            let said = format!(
                "session `{}` does not end with the hash that it should",
                record.id
            );
            return Err(Wrong::Line(said));
        }
        let id = one_line(record.id.as_str(), 100);
        let said = match current.kind {
            Kind::New => {
                self.store
                    .import_rows(std::mem::take(&mut current.rows))
                    .await?;
                self.report.grants += self.store.finish_import(record.clone()).await?;
                self.report.closed += u64::from(closing::close(self.app, &record.id).await?);
                self.report.imported += 1;
                if !self.own.contains(&record.user) {
                    *self.report.others.entry(record.user.clone()).or_default() += 1;
                }
                self.report.events += record.events;
                format!("{}, imported", count(record.events, "event"))
            }
            Kind::Same => {
                self.report.same += 1;
                "is here already, the same".to_owned()
            }
            Kind::Left => {
                self.report.left += 1;
                "is here already with another log; left as it is".to_owned()
            }
        };
        self.current = None;
        self.ticker.clear();
        screen::print(&format!("{id:<24}  {said}"))?;
        Ok(())
    }

    /// Takes back what there is of the session that was not whole, and says why.
    async fn give_up(&mut self, wrong: Wrong, name: &str, line: u64) -> Failure {
        let mut untouched = "nothing of it was imported".to_owned();
        if let Some(current) = self.current.take() {
            let id = &current.record.id;
            if matches!(current.kind, Kind::New) {
                // What is left of it stays hidden, and the next try replaces it.
                let _ = remove_hidden(self.store, id).await;
            }
            untouched = format!("nothing of session `{id}` was imported");
        }
        if self.report.imported > 0 {
            let before = count(self.report.imported, "session");
            untouched = format!("{untouched}; {before} before it came in whole");
        }
        match wrong {
            Wrong::Line(said) => {
                let message = format!("{name}, line {line}: {said}");
                Failure::new(Exit::Usage, message)
                    .next(format!("{untouched}; export it again where it comes from"))
            }
            Wrong::Other(id) => {
                let message = format!(
                    "{name}, line {line}: session `{id}` is here already, and its log is another one"
                );
                Failure::new(Exit::Usage, message).next(format!(
                    "{untouched}; --skip-existing leaves it as it is here and goes on"
                ))
            }
            Wrong::Failed(failure) => failure.at(&format!("{name}, line {line}")),
        }
    }
}

/// The failure of a file that cannot be opened or read.
fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    let message = format!("`{}` cannot be read: {error}", file.display());
    Failure::new(Exit::Usage, message).next("lango sessions import FILE")
}
