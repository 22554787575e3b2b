//! `lango sessions export`: writes sessions to a file or to stdout.

use crate::args::{ExportArguments, ExportFormat};
use crate::screen::{self, MarkdownTranscript, Ticker, count};
use lango::app::archive::{ExportError, LineSink, PartFile, SessionIds, check_line, write_session};
use lango::app::{App, Failure};
use lango_core::{EventRange, SessionId, SessionStore, StoreError};
use lango_store::Store;
use lango_store::archive::LogContents;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;

/// Runs the command.
pub(crate) async fn export(app: &App, arguments: ExportArguments) -> Result<(), Failure> {
    let store = app.existing_store()?;
    let mut ids =
        SessionIds::select(app, arguments.selection.all, &arguments.selection.ids).await?;
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
        let is_markdown = arguments.markdown || arguments.format == ExportFormat::Markdown;
        let written = if is_markdown {
            write_markdown(&store, &id, sessions > 0, &mut out, &mut seen).await
        } else {
            write_session(&store, &id, &mut out, &mut seen).await
        };
        match written {
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
        return Err(Failure::usage("there is no session to export")
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

/// Writes one session as Markdown. A separator comes before it if another one was written before.
async fn write_markdown(
    store: &Store,
    id: &SessionId,
    has_previous: bool,
    out: &mut Output,
    seen: &mut (dyn FnMut(u64) + Send),
) -> Result<LogContents, ExportError> {
    const PAGE: usize = 500;
    let record = match store.session_record(id).await {
        Err(StoreError::NotFound { .. }) => return Err(ExportError::NotFound),
        record => record?,
    };
    let separator = if has_previous { "\n---\n\n" } else { "" };
    let mut transcript = MarkdownTranscript::new();
    let heading = transcript.heading(&record.title, id.as_str(), record.created);
    out.line(format!("{separator}{heading}")).await?;
    let mut exported = LogContents {
        events: 0,
        attachments: 0,
    };
    loop {
        let page = EventRange {
            from: exported.events + 1,
            limit: PAGE,
        };
        let events = SessionStore::read(store, id, page).await?;
        for event in &events {
            for line in transcript.lines(event) {
                out.line(line).await?;
            }
            exported.events = event.seq;
        }
        seen(exported.events);
        if events.len() < PAGE {
            break;
        }
    }
    for line in transcript.finish() {
        out.line(line).await?;
    }
    Ok(exported)
}

enum Output {
    Stdout(BufWriter<io::Stdout>),
    File(PartFile),
}

impl LineSink for Output {
    async fn line(&mut self, line: String) -> Result<(), Failure> {
        check_line(&line)?;
        match self {
            Self::Stdout(out) => to_stdout(writeln!(out, "{line}")),
            Self::File(file) => file.write_line(&line),
        }
    }
}

impl Output {
    fn open(path: Option<PathBuf>) -> Result<Self, Failure> {
        match path {
            None => Ok(Self::Stdout(BufWriter::new(io::stdout()))),
            Some(path) => PartFile::open(path).map(Self::File),
        }
    }

    /// Flushes everything; returns the path of the file, if there is one.
    fn finish(self) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Stdout(mut out) => to_stdout(out.flush()).map(|()| None),
            Self::File(file) => file.finish().map(Some),
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
