//! Writing sessions out: every row of a log is checked on its way, and nothing that is not whole looks whole.

use super::Ids;
use crate::app::App;
use crate::args::ExportArguments;
use crate::exit::{Exit, Failure};
use crate::markdown::is_disruptive;
use crate::screen::{self, Layout, Ticker, count};
use bytes::Bytes;
use lango_core::{SessionId, StoreError};
use lango_store::archive::line::{self, LONGEST, Line};
use lango_store::archive::{
    LogContents, LogRow, SessionRecord, next_rows, read_attachment, verify_record,
};
use lango_store::{Chain, Store};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;

/// Runs the command.
pub async fn export(app: &App, arguments: ExportArguments) -> Result<(), Failure> {
    let store = app.existing_store()?;
    let mut ids = Ids::of(app, &arguments.which).await?;
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
        match one(&store, &id, &mut out, &mut seen).await {
            Ok(written) => {
                sessions += 1;
                events += written.events;
                attachments += written.attachments;
            }
            // One of all that was deleted before it was its turn.
            Err(Wrong::Gone) if arguments.which.all => {}
            Err(Wrong::Gone) => return Err(StoreError::NotFound { id }.into()),
            Err(Wrong::Failed(failure)) => {
                ticker.clear();
                return Err(*failure);
            }
        }
    }
    ticker.clear();
    if sessions == 0 {
        return Err(Failure::new(Exit::Usage, "there is no session to export")
            .next("`lango sessions list` shows the sessions"));
    }
    let place = out.finish()?;
    let mut written = format!("{}, {}", count(sessions, "session"), count(events, "event"));
    if attachments > 0 {
        written = format!("{written}, {}", count(attachments, "attachment"));
    }
    screen::say(&match place {
        Some(path) => format!("exported {written}, to {}", path.display()),
        None => format!("exported {written}"),
    });
    Ok(())
}

enum Wrong {
    /// There is no such session any more.
    Gone,
    Failed(Box<Failure>),
}

impl<E: Into<Failure>> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self::Failed(Box::new(error.into()))
    }
}

/// Writes one session as it is at this moment; what is said in it meanwhile is not in it.
async fn one(
    store: &Store,
    id: &SessionId,
    out: &mut impl LineSink,
    seen: &mut (dyn FnMut(u64) + Send),
) -> Result<LogContents, Wrong> {
    let record = match store.session_record(id).await {
        Err(StoreError::NotFound { .. }) => return Err(Wrong::Gone),
        record => record?,
    };
    line_of_session(&record, 0)?;
    // Nothing of a log that is damaged is written, so it is read twice.
    let contents = verify_record(store, &record, &mut |_| ()).await;
    let contents = contents.map_err(damaged)?;
    out.line(line_of_session(&record, contents.attachments)?)
        .await?;
    let mut chain = Chain::of(id);
    let mut attachments = BTreeSet::new();
    while chain.count() < record.events {
        let rows = next_rows(store, &record, &chain).await;
        for row in rows.map_err(damaged)? {
            let body = chain.take(&row).map_err(damaged)?;
            for attachment in body.attachments() {
                if attachments.insert(attachment.digest.clone()) {
                    let bytes = read_attachment(store, &record, row.seq, attachment).await;
                    let bytes = bytes.map_err(damaged)?;
                    let line = line::of_attachment(id, &attachment.digest, &bytes)?;
                    out.line(line).await?;
                }
            }
            out.line(line_of(&row)?).await?;
        }
        seen(chain.count());
    }
    if chain.hash() != record.hash {
        return Err(damaged(StoreError::Damaged {
            id: id.clone(),
            seq: record.events,
            detail: "it was changed while it was read".to_owned(),
        })
        .into());
    }
    Ok(contents)
}

fn damaged(error: StoreError) -> Failure {
    match error {
        StoreError::Damaged { .. } => Failure::new(Exit::Failed, error.to_string())
            .next("`lango sessions verify --all` tells which are whole; export those by their ids"),
        error => error.into(),
    }
}

/// The first line of a session. One that nobody could import is not written.
fn line_of_session(record: &SessionRecord, attachments: u64) -> Result<String, Failure> {
    let heading = line::heading(record, attachments);
    let text = line::sealed(&screen::json(&heading, Layout::Line)?);
    match line::read(&text) {
        Ok(Line::Session(read)) if read == *record => Ok(text),
        read => {
            let why = read
                .err()
                .unwrap_or_else(|| "it reads otherwise".to_owned());
            let message = format!("session `{}` cannot be exported: {why}", record.id);
            Err(Failure::new(Exit::Failed, message)
                .next("`lango store backup FILE` copies everything as it is"))
        }
    }
}

/// The line of an event: in its own bytes where they are harmless on a terminal, else spelled out. Either way reading it
/// gives the row that is stored, or nothing is written.
fn line_of(row: &LogRow) -> Result<String, Failure> {
    let reads_back = |text: &String| line::read(text) == Ok(Line::Event(row.clone()));
    let spliced = line::of_event(row)?.filter(|text| !text.contains(is_disruptive));
    if let Some(text) = spliced.filter(reads_back) {
        return Ok(text);
    }
    let text = screen::json(&line::spelled_out(row)?, Layout::Line)?;
    if reads_back(&text) && text.len() <= LONGEST {
        return Ok(text);
    }
    let message = format!(
        "event {} of session `{}` cannot be written as a line",
        row.seq, row.session
    );
    Err(Failure::new(Exit::Failed, message)
        .next("`lango store backup FILE` copies everything as it is"))
}

/// Where the lines of an export go.
trait LineSink: Send {
    fn line(&mut self, line: String) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Sends the lines of a session to a channel, as bytes with line ends. The last item is the error, if there is one.
pub async fn send(store: &Store, id: &SessionId, lines: mpsc::Sender<Result<Bytes, String>>) {
    let mut out = ChannelSink(lines.clone());
    let error = match one(store, id, &mut out, &mut |_| ()).await {
        Ok(_) => return,
        Err(Wrong::Gone) => format!("there is no session `{id}`"),
        Err(Wrong::Failed(failure)) => failure.to_string(),
    };
    // The reader may be gone.
    let _ = lines.send(Err(error)).await;
}

struct ChannelSink(mpsc::Sender<Result<Bytes, String>>);

impl LineSink for ChannelSink {
    async fn line(&mut self, mut line: String) -> Result<(), Failure> {
        line.push('\n');
        let sent = self.0.send(Ok(Bytes::from(line))).await;
        sent.map_err(|_| Failure::new(Exit::Failed, "the reader of the export is gone"))
    }
}

impl LineSink for Output {
    async fn line(&mut self, line: String) -> Result<(), Failure> {
        self.write_line(&line)
    }
}

/// The standard output, or a file.
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
        if line.len() > LONGEST {
            let message = "a session has an event that is too long for a line";
            return Err(Failure::new(Exit::Failed, message)
                .next("`lango store backup FILE` copies everything as it is"));
        }
        match self {
            Self::Stdout(out) => to_stdout(writeln!(out, "{line}")),
            Self::File(file) => {
                let written = writeln!(file.out, "{line}");
                written.map_err(|error| unwritable(&file.path, &error))
            }
        }
    }

    /// Sees to it that all is written; gives the file.
    fn finish(self) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Stdout(mut out) => to_stdout(out.flush()).map(|()| None),
            Self::File(file) => {
                let path = file.path.clone();
                let placed = file.place();
                placed.map_err(|error| unwritable(&path, &error))?;
                Ok(Some(path))
            }
        }
    }
}

/// A reader that has gone away ends the process quietly, as it does for other programs.
fn to_stdout(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("`{}` cannot be written: {error}", path.display());
    let next = match error.kind() {
        ErrorKind::AlreadyExists => "choose a name that is not taken",
        _ => "choose another place with --output FILE",
    };
    Failure::new(Exit::Usage, message).next(next)
}

/// A file that gets its name when it is whole. Until then it has another, and is removed if it does not come to that.
struct PartFile {
    path: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
}

impl PartFile {
    fn open(path: &Path) -> io::Result<Self> {
        must_be_free(path)?;
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

    fn place(mut self) -> io::Result<()> {
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        must_be_free(&self.path)?;
        fs::rename(&self.part, &self.path)
    }
}

fn must_be_free(path: &Path) -> io::Result<()> {
    match path.try_exists()? {
        true => Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "it is there already",
        )),
        false => Ok(()),
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // Once it has its name there is nothing to remove.
        let _ = fs::remove_file(&self.part);
    }
}
