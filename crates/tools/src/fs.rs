//! The tools that read files (`fs_list`, `fs_read`, `fs_stat`, `fs_search`) and the tools that change them (`fs_write`,
//! `fs_edit`, `fs_mkdir`, `fs_delete`).
//!
//! The first group is pure and safe. The changes of the second group can be undone, and each tool can preview its
//! change for the user who approves it. All of them return text; notes of the tool itself are in brackets on separate
//! lines. Only `fs_read` also returns images.

mod delete;
mod edit;
mod guess;
mod list;
mod mkdir;
mod page;
mod read;
mod replace;
mod search;
mod stat;
mod text;
mod write;

use crate::change::{CHANGED_SINCE_CHECK, Change};
use crate::declaration::{Blocking, BlockingParts, Call};
use crate::diff::PREVIEW_LINES;
use crate::file_error::FileError;
use crate::target_path::TargetPath;
use crate::undo::{Recorder, UndoStore};
use crate::{Trash, Workspace};
use lango_core::{
    Caller, Effect, Inspection, PreviewLength, PreviewRequest, Risk, RuleSubject, Tool,
    ToolDeclaration, ToolOutput,
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use std::sync::Arc;

/// Creates the tools that read and change the files of a workspace. Deleted files go to the trash. With an undo store,
/// the changes of a turn can be undone; without one, mode `accept-edits` asks before a file is replaced.
pub fn file_tools(
    workspace: &Workspace,
    trash: &Trash,
    undo: Option<&UndoStore>,
) -> Vec<Arc<dyn Tool>> {
    let context = FileContext {
        workspace: workspace.clone(),
        trash: trash.clone(),
        undo: undo.cloned(),
    };
    vec![
        list::tool(workspace),
        read::tool(workspace),
        stat::tool(workspace),
        write::tool(&context),
        edit::tool(&context),
        mkdir::tool(&context),
        delete::tool(&context),
        search::tool(workspace),
    ]
}

/// What the tools that change files work with.
#[derive(Clone)]
struct FileContext {
    workspace: Workspace,
    trash: Trash,
    undo: Option<UndoStore>,
}

impl FileContext {
    /// Starts to record the changes of a call. Fails if the call was cancelled while another one changed files.
    fn recorder<'a>(&'a self, call: &'a Call) -> Result<Recorder<'a>, FileError> {
        let recorder = Recorder::new(self.undo.as_ref(), &self.workspace, call);
        recorder.expect_running()?;
        Ok(recorder)
    }
}

/// The functions of a tool that only reads.
struct ReadFunctions<A, O> {
    /// Resolves the path of a call.
    resolve: for<'a> fn(&'a Workspace, &A) -> Result<TargetPath<'a>, FileError>,
    /// Runs the call on the resolved path.
    run: fn(&TargetPath<'_>, A) -> Result<O, FileError>,
}

/// Creates a tool that only reads.
fn read_only_tool<A, O>(
    workspace: &Workspace,
    name: &'static str,
    description: &'static str,
    functions: ReadFunctions<A, O>,
) -> Arc<dyn Tool>
where
    A: JsonSchema + DeserializeOwned + Send + 'static,
    O: Into<ToolOutput> + Send + 'static,
{
    let ReadFunctions { resolve, run } = functions;
    let (inspected, workspace) = (workspace.clone(), workspace.clone());
    let declaration = ToolDeclaration {
        name,
        description,
        effect: Effect::Pure,
        risk: Risk::Safe,
        subject: RuleSubject::Path,
    };
    let parts = BlockingParts {
        preview: None,
        inspect: Some(Box::new(move |_, arguments| {
            let target = resolve(&inspected, &arguments).ok();
            Inspection {
                path: target.and_then(|target| target.resolution()),
                ..Inspection::default()
            }
        })),
    };
    declaration.with_blocking_parts(
        move |call, arguments| {
            let target = resolve(&workspace, &arguments)?;
            target.expect_same_path(&call.caller.inspection)?;
            Ok(run(&target, arguments)?)
        },
        parts,
    )
}

/// The functions of a tool that changes files.
struct ChangeFunctions<A> {
    /// Runs the call and records its changes before it makes them. Fails if its [`Change`] needs an approval and is not
    /// the one that was inspected.
    run: fn(&FileContext, A, &Call) -> Result<String, FileError>,
    preview: fn(&FileContext, A, &PreviewRequest) -> Result<String, FileError>,
    inspect: fn(&FileContext, A, &Caller) -> Result<Change, FileError>,
}

/// Creates a tool that changes files.
fn modifying_tool<A>(
    context: &FileContext,
    (name, effect): (&'static str, Effect),
    description: &'static str,
    change: ChangeFunctions<A>,
) -> Arc<dyn Tool>
where
    A: JsonSchema + DeserializeOwned + Send + 'static,
{
    let declaration = ToolDeclaration {
        name,
        description,
        effect,
        risk: Risk::Moderate,
        subject: RuleSubject::Path,
    };
    let (shown, inspected, context) = (context.clone(), context.clone(), context.clone());
    let parts = BlockingParts {
        preview: Some(Box::new(move |arguments, request| {
            match (change.preview)(&shown, arguments, request) {
                Err(FileError::Redirected { .. } | FileError::ChangedSinceQuestion { .. }) => {
                    Ok(CHANGED_SINCE_CHECK.to_owned())
                }
                shown => Ok(shown?),
            }
        })),
        inspect: Some(Box::new(move |caller, arguments| {
            let inspected = (change.inspect)(&inspected, arguments, caller);
            let Change {
                guarded,
                edit,
                path,
            } = inspected.unwrap_or_else(|_| Change::default().that_fails());
            Inspection {
                guarded,
                edit: Some(Box::new(edit)),
                path,
                ..Inspection::default()
            }
        })),
    };
    declaration.with_blocking_parts(
        move |call, arguments| Ok((change.run)(&context, arguments, &call)?),
        parts,
    )
}

/// Returns the maximum number of diff lines in a preview.
fn preview_lines(length: PreviewLength) -> usize {
    match length {
        PreviewLength::Short => PREVIEW_LINES,
        PreviewLength::Full => usize::MAX,
    }
}

/// Formats a tool call for a note, with arguments in the order of the type's fields: `fs_list {"path":"src"}`.
fn call_text(name: &str, arguments: &impl Serialize) -> String {
    // Structs with plain fields always serialize.
    format!(
        "{name} {}",
        serde_json::to_string(arguments).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_sandbox::Policy;
    use lango_testkit::tool::caller;
    use serde_json::json;
    use std::task::{Context, Waker};

    #[test]
    fn a_call_that_is_cancelled_while_it_waits_for_another_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let inside = path.join("workspace");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("old.txt"), "old").unwrap();
        let workspace = Workspace::open(Policy::of(inside.clone())).unwrap();
        let undo = UndoStore::at(path.join("undo"));
        let tools = file_tools(&workspace, &Trash::at(path.join("trash")), Some(&undo));
        // One thread runs the calls in order, so they have ended when the last task has.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let caller = caller();
        let other_call = undo.lock(&caller.turn);
        for (name, arguments) in [
            ("fs_write", json!({"path": "new.txt", "content": "new"})),
            (
                "fs_edit",
                json!({"path": "old.txt", "old": "old", "new": "new"}),
            ),
            ("fs_mkdir", json!({"path": "new"})),
            ("fs_delete", json!({"path": "old.txt"})),
        ] {
            let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
            let _inside = runtime.enter();
            let mut call = tool.run(&caller, Arc::new(arguments));
            let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        }
        drop(other_call);
        let ended = runtime.spawn_blocking(|| ());
        runtime.block_on(ended).unwrap();
        let names = std::fs::read_dir(&inside).unwrap();
        assert_eq!(names.count(), 1);
        let content = std::fs::read_to_string(inside.join("old.txt"));
        assert_eq!(content.unwrap(), "old");
        assert!(undo.turns().unwrap().is_empty());
    }
}
