//! Writes a session as lines of JSON. Every row of its log is verified on the way.

use crate::app::failure::Failure;
use bytes::Bytes;
use lango_core::text::{self, Layout, is_disruptive};
use lango_core::{SessionId, StoreError};
use lango_store::archive::line::{self, Line, MAX_LINE_BYTES};
use lango_store::archive::{
    LogContents, LogRow, SessionRecord, next_rows, read_attachment, verify_record,
};
use lango_store::{LogVerifier, Store};
use std::collections::BTreeSet;
use tokio::sync::mpsc;

/// Why a session was not exported.
pub enum ExportError {
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
pub async fn write_session(
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
        StoreError::Damaged { .. } => Failure::failed(error.to_string())
            .next("run `lango sessions verify --all` to see which are undamaged, and export those by their ids"),
        error => error.into(),
    }
}

/// Returns the first line of a session. Fails if the line could not be imported again.
fn session_line(record: &SessionRecord, attachments: u64) -> Result<String, Failure> {
    let heading = line::heading(record, attachments);
    let text = line::add_seal(&text::json(&heading, Layout::Line)?);
    match line::parse(&text) {
        Ok(Line::Session(read)) if read == *record => Ok(text),
        read => {
            let why = read
                .err()
                .unwrap_or_else(|| "it does not read back unchanged".to_owned());
            let message = format!("session `{}` cannot be exported: {why}", record.id);
            Err(Failure::failed(message)
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
    let text = text::json(&line::format_escaped_event(row)?, Layout::Line)?;
    if reads_back(&text) && text.len() <= MAX_LINE_BYTES {
        return Ok(text);
    }
    let message = format!(
        "event {} of session `{}` cannot be written as a line",
        row.seq, row.session
    );
    Err(Failure::failed(message).next("`lango store backup FILE` copies the database unchanged"))
}

/// The destination of an export's lines.
pub trait LineSink: Send {
    /// Writes one line, without its line end.
    fn line(&mut self, line: String) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Sends the lines of a session to a channel, as bytes that include the line ends. If the export fails, the last item
/// is the error.
pub async fn send_export(
    store: &Store,
    id: &SessionId,
    lines: mpsc::Sender<Result<Bytes, String>>,
) {
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
        sent.map_err(|_| Failure::failed("the reader of the export has disconnected"))
    }
}
