//! `lango sessions export`: an incomplete file never gets the final name.

use crate::args::ExportArguments;
use crate::screen::{self, Ticker, count};
use lango::app::archive::{ExportError, LineSink, SessionIds, write_session};
use lango::app::{App, Failure};
use lango_core::StoreError;
use lango_store::archive::line::MAX_LINE_BYTES;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Runs the command.
pub async fn export(app: &App, arguments: ExportArguments) -> Result<(), Failure> {
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
            return Err(Failure::failed(message)
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
    Failure::usage(message).next(next)
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
