//! `fs_read`: a text file, or one page of it; an image comes back as it is.
//!
//! A small file comes back exactly as it is. A larger one comes in pages, each with a note of how to read on; the
//! paging itself is in [`page`](super::page). Here are the arguments, the note and the refusals.

use super::page::{self, Page, Position, Stop};
use super::{call_text, looking_tool};
use crate::Workspace;
use crate::file_error::FileError;
use crate::show;
use lango_core::{AttachedFile, Tool, ToolOutput, image_type};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{self, Cursor, Read};
use std::num::NonZeroU64;
use std::sync::Arc;

const DESCRIPTION: &str = "Reads a UTF-8 text file of the workspace, up to 64 KiB a call. If there is more, a note \
    in brackets at the end says with which arguments to read on; without a note the text reaches the end of the file. \
    A PNG, JPEG, GIF or WebP image is shown to you.";

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    looking_tool(workspace, "fs_read", DESCRIPTION, read)
}

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    /// The file, relative to the workspace.
    path: String,
    /// The line to start with; 1, the first, if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_line: Option<NonZeroU64>,
    /// How many bytes of that line to leave out, to read on in a very long line; 0 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    skip_bytes: Option<NonZeroU64>,
    /// How many lines to read; as many as fit if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<NonZeroU64>,
}

fn read(workspace: &Workspace, arguments: ReadArguments) -> Result<ToolOutput, FileError> {
    let place = workspace.locate(&arguments.path)?;
    let spot = place.target()?;
    let (mut file, size) = spot.open_file()?;
    let mut head = Vec::with_capacity(HEAD_BYTES);
    file.by_ref()
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(|cause| spot.explain(cause))?;
    let file = Cursor::new(&head).chain(file);
    if image_type(&head).is_some() {
        return read_image(file, &place.shown(), size)
            .map_err(|cause| spot.explain(cause))?
            .ok_or_else(|| FileError::ImageTooLarge {
                path: place.shown(),
                size: show::size(size),
                limit: show::size(AttachedFile::IMAGE_BYTES as u64),
            });
    }
    let start = Position {
        line: arguments.first_line.map_or(1, NonZeroU64::get),
        skip_bytes: arguments.skip_bytes.map_or(0, NonZeroU64::get),
    };
    let path = place.shown();
    let page = page::read(file, start, arguments.lines).map_err(|stop| match stop {
        Stop::NotText { guess } => FileError::NotText {
            path,
            size: show::size(size),
            guess,
        },
        Stop::PastTheEnd { lines } => FileError::PastTheEnd {
            path,
            content: show::count(lines, "line"),
            argument: "first_line",
        },
        Stop::PastTheLine => FileError::PastTheEnd {
            path,
            content: format!("fewer bytes in line {}", start.line),
            argument: "skip_bytes",
        },
        Stop::TooFar => FileError::TooFar {
            path,
            line: start.line,
            limit: show::size(page::SCANNED_BYTES),
        },
        Stop::Failed(error) => spot.explain(error),
    })?;
    Ok(page_with_note(page, start, size, &place.shown(), arguments).into())
}

/// Enough of a file to tell an image by.
const HEAD_BYTES: usize = 16;

/// The image, unless it is too large to be shown.
fn read_image(file: impl Read, path: &str, size: u64) -> io::Result<Option<ToolOutput>> {
    let most = AttachedFile::IMAGE_BYTES as u64;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Ok(None);
    }
    let mut output = ToolOutput::from(format!("[{path} is an image of {}]", show::size(size)));
    output.files.extend(AttachedFile::image(path, bytes));
    Ok(Some(output))
}

fn page_with_note(
    page: Page,
    start: Position,
    size: u64,
    path: &str,
    asked: ReadArguments,
) -> String {
    if page.text.is_empty() {
        return format!("[{path} is empty]\n");
    }
    let Some(next) = page.next else {
        return page.text;
    };
    let extent = if next.line == start.line {
        format!("part of line {}", start.line)
    } else if next.line == start.line + 1 {
        format!("line {}", start.line)
    } else {
        format!("lines {} to {}", start.line, next.line - 1)
    };
    // What is left is at least what was seen, also in a file that grew since it was measured.
    let left = size.saturating_sub(page.end).max(1);
    let arguments = ReadArguments {
        first_line: NonZeroU64::new(next.line),
        skip_bytes: NonZeroU64::new(next.skip_bytes),
        ..asked
    };
    let call = call_text("fs_read", &arguments);
    let mut text = page.text;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!(
        "[{extent} of {path}; {} more follow, read on with {call}]\n",
        show::size(left)
    ));
    text
}
