//! `fs_read`: returns a text file, one page of it, or an image.
//!
//! A small file is returned unchanged. A larger one is returned in pages, each with a note on how to read the next.
//! This module has the arguments, the note and the errors; [`page`](super::page) does the paging.

use super::page::{self, Page, PageError, Position};
use super::{ReadFunctions, call_text, read_only_tool};
use crate::Workspace;
use crate::file_error::FileError;
use crate::show;
use crate::target_path::TargetPath;
use lango_core::{AttachedFile, Tool, ToolOutput, image_type};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{self, Cursor, Read};
use std::num::NonZeroU64;
use std::sync::Arc;

const DESCRIPTION: &str = "Reads a UTF-8 text file of the workspace, up to 64 KiB per call. If there is more, a note \
    in brackets at the end gives the arguments for the next call; without a note the text reaches the end of the file. \
    A PNG, JPEG, GIF or WebP image is shown to you.";

pub(super) fn tool(workspace: &Workspace) -> Arc<dyn Tool> {
    let functions = ReadFunctions { resolve, run: read };
    read_only_tool(workspace, "fs_read", DESCRIPTION, functions)
}

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    /// The file, relative to the workspace.
    path: String,
    /// The line to start with; defaults to 1, the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_line: Option<NonZeroU64>,
    /// Number of bytes of that line to skip, to continue in a very long line; defaults to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    skip_bytes: Option<NonZeroU64>,
    /// Maximum number of lines to read; defaults to as many as fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<NonZeroU64>,
}

fn resolve<'a>(
    workspace: &'a Workspace,
    arguments: &ReadArguments,
) -> Result<TargetPath<'a>, FileError> {
    workspace.locate(&arguments.path)?.target()
}

fn read(target: &TargetPath<'_>, arguments: ReadArguments) -> Result<ToolOutput, FileError> {
    let (mut file, size) = target.open_file()?;
    let mut head = Vec::with_capacity(HEAD_BYTES);
    file.by_ref()
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(|cause| target.explain(cause))?;
    let file = Cursor::new(&head).chain(file);
    if image_type(&head).is_some() {
        return read_image(file, target.display_path(), size)
            .map_err(|cause| target.explain(cause))?
            .ok_or_else(|| FileError::ImageTooLarge {
                path: target.display_path().to_owned(),
                size: show::size(size),
                limit: show::size(AttachedFile::IMAGE_BYTES as u64),
            });
    }
    let start = Position {
        line: arguments.first_line.map_or(1, NonZeroU64::get),
        skip_bytes: arguments.skip_bytes.map_or(0, NonZeroU64::get),
    };
    let path = target.display_path().to_owned();
    let page = page::read(file, start, arguments.lines).map_err(|error| match error {
        PageError::NotText { guess } => FileError::NotText {
            path,
            size: show::size(size),
            guess,
        },
        PageError::PastTheEnd { lines } => FileError::PastTheEnd {
            path,
            content: show::count(lines, "line"),
            argument: "first_line",
        },
        PageError::PastTheLine => FileError::PastTheEnd {
            path,
            content: format!("fewer bytes in line {}", start.line),
            argument: "skip_bytes",
        },
        PageError::TooFar => FileError::TooFar {
            path,
            line: start.line,
            limit: show::size(page::SCANNED_BYTES),
        },
        PageError::Failed(error) => target.explain(error),
    })?;
    Ok(page_with_note(page, start, size, target.display_path(), arguments).into())
}

/// Number of bytes at the start of a file that are enough to recognize an image.
const HEAD_BYTES: usize = 16;

/// Reads an image; `None` if it is too large to be shown.
fn read_image(file: impl Read, path: &str, size: u64) -> io::Result<Option<ToolOutput>> {
    let limit = AttachedFile::IMAGE_BYTES as u64;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
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
    // At least one more byte was seen, even if the file has grown since its size was read.
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
        "[{extent} of {path}; {} more, continue with {call}]\n",
        show::size(left)
    ));
    text
}
