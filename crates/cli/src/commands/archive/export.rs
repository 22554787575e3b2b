//! Exports sessions: every row of a log is verified on the way, and an incomplete file never gets the final name.

use super::SessionIds;
use crate::app::App;
use crate::args::ExportArguments;
use crate::exit::{Exit, Failure};
use crate::markdown::is_disruptive;
use crate::screen::{self, Layout, Ticker, count};
use bytes::Bytes;
use lango_core::{SessionId, StoreError};
use lango_store::archive::line::{self, Line, MAX_LINE_BYTES};
use lango_store::archive::{
    LogContents, LogRow, SessionRecord, next_rows, read_attachment, verify_record,
};
use lango_store::{LogVerifier, Store};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;

/// Runs the command.
pub async fn export(app: &App, arguments: ExportArguments) -> Result<(), Failure> {
    let store = app.existing_store()?;
    let mut ids = SessionIds::of(app, &arguments.selection).await?;
    let mut out = Output::open(arguments.output)?;
    let mut ticker = Ticker::new();
    let (mut sessions, mut events, mut attachments) = (0, 0, 0);
    while let Some(id) = ids.next(&store).await? {
        let mut seen = |done| {
            let line = format!(
                "{} exported, {id}: event {done}",
                count(sessions, "session")
            );
            ticker.show(|| line);
        };
        match write_session(&store, &id, &mut out, &mut seen).await {
            Ok(written) => {
                sessions += 1;
                events += written.events;
                attachments += written.attachments;
            }
            // With `--all`, a session may have been deleted meanwhile.
            Err(ExportError::NotFound) if arguments.selection.all => {}
            Err(ExportError::NotFound) => return Err(StoreError::NotFound { id }.into()),
            Err(ExportError::Failed(failure)) => {
                ticker.clear();
                return Err(*failure);
            }
        }
    }
    ticker.clear();
    if sessions == 0 {
        return Err(Failure::new(Exit::Usage, "there is no session to export")
            .next("run `lango sessions list` to see the sessions"));
    }
    let file = out.finish()?;
    let mut written = format!("{}, {}", count(sessions, "session"), count(events, "event"));
    if attachments > 0 {
        written = format!("{written}, {}", count(attachments, "attachment"));
    }
    screen::say(&match file {
        Some(path) => format!("exported {written}, to {}", path.display()),
        None => format!("exported {written}"),
    });
    Ok(())
}

enum ExportError {
    /// The session no longer exists.
    NotFound,
    Failed(Box<Failure>),
}

impl<E: Into<Failure>> From<E> for ExportError {
    fn from(error: E) -> Self {
        Self::Failed(Box::new(error.into()))
    }
}

/// Writes one session in its current state; later events are not included.
async fn write_session(
    store: &Store,
    id: &SessionId,
    out: &mut impl LineSink,
    seen: &mut (dyn FnMut(u64) + Send),
) -> Result<LogContents, ExportError> {
    let record = match store.session_record(id).await {
        Err(StoreError::NotFound { .. }) => return Err(ExportError::NotFound),
        record => record?,
    };
    session_line(&record, 0)?;
    // The log is read twice, so that no part of a damaged one is written.
    let contents = verify_record(store, &record, &mut |_| ()).await;
    let contents = contents.map_err(damaged_failure)?;
    out.line(session_line(&record, contents.attachments)?)
        .await?;
    let mut chain = LogVerifier::new(id);
    let mut attachments = BTreeSet::new();
    while chain.count() < record.events {
        let rows = next_rows(store, &record, &chain).await;
        for row in rows.map_err(damaged_failure)? {
            let body = chain.verify(&row).map_err(damaged_failure)?;
            for attachment in body.attachments() {
                if attachments.insert(attachment.digest.clone()) {
                    let bytes = read_attachment(store, &record, row.seq, attachment).await;
                    let bytes = bytes.map_err(damaged_failure)?;
                    let line = line::format_attachment(id, &attachment.digest, &bytes)?;
                    out.line(line).await?;
                }
            }
            out.line(event_line(&row)?).await?;
        }
        seen(chain.count());
    }
    if chain.hash() != record.hash {
        return Err(damaged_failure(StoreError::Damaged {
            id: id.clone(),
            seq: record.events,
            detail: "it was changed while it was read".to_owned(),
        })
        .into());
    }
    Ok(contents)
}

fn damaged_failure(error: StoreError) -> Failure {
    match error {
        StoreError::Damaged { .. } => Failure::new(Exit::Failed, error.to_string())
            .next("run `lango sessions verify --all` to see which are undamaged, and export those by their ids"),
        error => error.into(),
    }
}

/// Returns the first line of a session. Fails if the line could not be imported again.
fn session_line(record: &SessionRecord, attachments: u64) -> Result<String, Failure> {
    let heading = line::heading(record, attachments);
    let text = line::add_seal(&screen::json(&heading, Layout::Line)?);
    match line::parse(&text) {
        Ok(Line::Session(read)) if read == *record => Ok(text),
        read => {
            let why = read
                .err()
                .unwrap_or_else(|| "it does not read back unchanged".to_owned());
            let message = format!("session `{}` cannot be exported: {why}", record.id);
            Err(Failure::new(Exit::Failed, message)
                .next("`lango store backup FILE` copies the database unchanged"))
        }
    }
}

/// Returns the line of an event: its stored bytes if they are harmless on a terminal, otherwise escaped. Fails unless
/// reading the line gives exactly the stored row.
fn event_line(row: &LogRow) -> Result<String, Failure> {
    let reads_back = |text: &String| line::parse(text) == Ok(Line::Event(row.clone()));
    let spliced = line::format_event(row)?.filter(|text| !text.contains(is_disruptive));
    if let Some(text) = spliced.filter(reads_back) {
        return Ok(text);
    }
    let text = screen::json(&line::format_escaped_event(row)?, Layout::Line)?;
    if reads_back(&text) && text.len() <= MAX_LINE_BYTES {
        return Ok(text);
    }
    let message = format!(
        "event {} of session `{}` cannot be written as a line",
        row.seq, row.session
    );
    Err(Failure::new(Exit::Failed, message)
        .next("`lango store backup FILE` copies the database unchanged"))
}

/// The destination of an export's lines.
trait LineSink: Send {
    fn line(&mut self, line: String) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Sends the lines of a session to a channel, as bytes that include the line ends. If the export fails, the last item
/// is the error.
pub async fn send(store: &Store, id: &SessionId, lines: mpsc::Sender<Result<Bytes, String>>) {
    let mut out = ChannelSink(lines.clone());
    let error = match write_session(store, id, &mut out, &mut |_| ()).await {
        Ok(_) => return,
        Err(ExportError::NotFound) => format!("there is no session `{id}`"),
        Err(ExportError::Failed(failure)) => failure.to_string(),
    };
    // The receiver may have been dropped.
    let _ = lines.send(Err(error)).await;
}

struct ChannelSink(mpsc::Sender<Result<Bytes, String>>);

impl LineSink for ChannelSink {
    async fn line(&mut self, mut line: String) -> Result<(), Failure> {
        line.push('\n');
        let sent = self.0.send(Ok(Bytes::from(line))).await;
        sent.map_err(|_| Failure::new(Exit::Failed, "the reader of the export has disconnected"))
    }
}

impl LineSink for Output {
    async fn line(&mut self, line: String) -> Result<(), Failure> {
        self.write_line(&line)
    }
}

enum Output {
    Stdout(BufWriter<io::Stdout>),
    File(PartFile),
}

impl Output {
    fn open(path: Option<PathBuf>) -> Result<Self, Failure> {
        match path {
            None => Ok(Self::Stdout(BufWriter::new(io::stdout()))),
            Some(path) => {
                let file = PartFile::open(&path);
                Ok(Self::File(file.map_err(|error| unwritable(&path, &error))?))
            }
        }
    }

    fn write_line(&mut self, line: &str) -> Result<(), Failure> {
        if line.len() > MAX_LINE_BYTES {
            let message = "an event of a session is too long for an export line";
            return Err(Failure::new(Exit::Failed, message)
                .next("`lango store backup FILE` copies the database unchanged"));
        }
        match self {
            Self::Stdout(out) => to_stdout(writeln!(out, "{line}")),
            Self::File(file) => {
                let written = writeln!(file.out, "{line}");
                written.map_err(|error| unwritable(&file.path, &error))
            }
        }
    }

    /// Flushes everything; returns the path of the file, if there is one.
    fn finish(self) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Stdout(mut out) => to_stdout(out.flush()).map(|()| None),
            Self::File(file) => {
                let path = file.path.clone();
                let committed = file.commit();
                committed.map_err(|error| unwritable(&path, &error))?;
                Ok(Some(path))
            }
        }
    }
}

/// Exits quietly if the reader of stdout has gone away, as other programs do.
fn to_stdout(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("`{}` cannot be written: {error}", path.display());
    let next = match error.kind() {
        ErrorKind::AlreadyExists => "choose a file name that does not exist yet",
        _ => "choose another file with --output FILE",
    };
    Failure::new(Exit::Usage, message).next(next)
}

/// A file that has a temporary name until it is complete, and then gets its final name. If this is dropped before
/// that, the file is deleted.
struct PartFile {
    path: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
}

impl PartFile {
    fn open(path: &Path) -> io::Result<Self> {
        check_not_taken(path)?;
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        Ok(Self {
            path: path.to_owned(),
            out: BufWriter::new(options.open(&part)?),
            part,
        })
    }

    fn commit(mut self) -> io::Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        check_not_taken(&self.path)?;
        fs::rename(&self.part, &self.path)
    }
}

fn check_not_taken(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "it already exists",
        ));
    }
    Ok(())
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // After the rename there is nothing to remove.
        let _ = fs::remove_file(&self.part);
    }
}
