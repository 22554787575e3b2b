//! A fixture with a temporary workspace, and a secret next to it that no tool may reach.

use lango_core::{
    Caller, Inspection, PreviewLength, PreviewRequest, SessionId, Tool, ToolError, ToolOutput,
    TurnId,
};
use lango_sandbox::Policy;
use lango_testkit::tool::caller;
use lango_tools::{
    Trash, TrashError, TrashItem, TurnRecord, UndoLimits, UndoMode, UndoOutcome, UndoResult,
    UndoStep, UndoStore, Workspace, file_tools,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The content of the file outside the workspace.
pub(crate) const SECRET: &str = "the secret outside";

/// A folder `workspace` and, next to it, `outside/secret.txt`. The trash and the originals are in another temporary
/// folder.
pub(crate) struct FileFixture {
    folder: TempDir,
    _trash_folder: TempDir,
    workspace: Workspace,
    trash: Trash,
    undo: UndoStore,
    tools: Vec<Arc<dyn Tool>>,
}

impl FileFixture {
    pub(crate) fn new() -> Self {
        Self::with_policy(|_, _| {})
    }

    /// Creates the fixture with a changed policy. `change` also gets the folder that contains everything.
    pub(crate) fn with_policy(change: impl FnOnce(&mut Policy, &Path)) -> Self {
        let (folder, trash) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Self::in_folder(folder, trash, change)
    }

    /// Creates the fixture in the given folders, which may be on different file systems.
    pub(crate) fn in_folder(
        folder: TempDir,
        trash_folder: TempDir,
        change: impl FnOnce(&mut Policy, &Path),
    ) -> Self {
        let path = folder.path().canonicalize().unwrap();
        std::fs::create_dir(path.join("workspace")).unwrap();
        std::fs::create_dir(path.join("outside")).unwrap();
        std::fs::write(path.join("outside/secret.txt"), SECRET).unwrap();
        let mut policy = Policy::of(path.join("workspace"));
        change(&mut policy, &path);
        let workspace = Workspace::open(policy).unwrap();
        let trash = Trash::at(trash_folder.path().join("trash"));
        let undo = UndoStore::at(trash_folder.path().join("undo"));
        Self {
            tools: file_tools(&workspace, &trash, Some(&undo)),
            workspace,
            trash,
            undo,
            folder,
            _trash_folder: trash_folder,
        }
    }

    /// Sets the limits of what is saved.
    pub(crate) fn with_undo_limits(mut self, limits: UndoLimits) -> Self {
        self.undo = self.undo.with_limits(limits);
        self.tools = file_tools(&self.workspace, &self.trash, Some(&self.undo));
        self
    }

    /// Saves no originals.
    pub(crate) fn without_undo(mut self) -> Self {
        self.tools = file_tools(&self.workspace, &self.trash, None);
        self
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(crate) fn undo_store(&self) -> &UndoStore {
        &self.undo
    }

    /// Returns the record of a turn of the session `s_1`.
    pub(crate) fn record(&self, turn: &str) -> TurnRecord {
        let (session, turn) = (SessionId::from("s_1"), TurnId::from(turn));
        self.undo.turn(&session, &turn).unwrap().unwrap()
    }

    /// Returns what undoing a turn would do.
    pub(crate) fn check_undo(&self, turn: &str) -> Vec<UndoStep> {
        self.record(turn).check(&self.workspace, &self.trash)
    }

    /// Undoes a turn and deletes the originals of what was restored.
    pub(crate) fn undo(&self, turn: &str, mode: UndoMode) -> Vec<UndoResult> {
        self.undo_record(&self.record(turn), mode)
    }

    pub(crate) fn undo_record(&self, record: &TurnRecord, mode: UndoMode) -> Vec<UndoResult> {
        let results = record.undo(&self.workspace, &self.trash, mode, &|| true);
        record.delete_restored(&results).unwrap();
        results
    }

    /// Deletes the records of all turns.
    pub(crate) fn forget_turns(&self) {
        self.undo.forget_session(&SessionId::from("s_1")).unwrap();
    }

    /// Undoes a turn, of which nothing may be left.
    pub(crate) fn undo_all(&self, turn: &str) {
        for result in self.undo(turn, UndoMode::Whole) {
            let is_undone = matches!(
                result.outcome,
                UndoOutcome::Restored | UndoOutcome::Unchanged
            );
            assert!(is_undone, "{result:?}");
        }
    }

    pub(crate) fn trash(&self) -> &Trash {
        &self.trash
    }

    pub(crate) fn restore(&self, id: &str) -> Result<TrashItem, TrashError> {
        self.trash.restore(&self.workspace, id)
    }

    /// Returns the path of an entry in the workspace.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        self.folder.path().join("workspace").join(name)
    }

    /// Returns the path of an entry in the folder outside.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join("outside").join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.inside(name)).unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.inside(name).symlink_metadata().is_ok()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.inside(name).parent().unwrap()).unwrap();
        std::fs::write(self.inside(name), content).unwrap();
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.inside(name)).unwrap();
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name);
        Arc::clone(tool.unwrap())
    }

    /// Inspects and runs a call. If the tool hangs, the test fails.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        let inspection = self.inspect(tool, arguments.clone());
        self.call_inspected(tool, arguments, inspection)
    }

    /// Inspects and runs a call of this turn.
    pub(crate) fn call_in(&self, turn: &str, tool: &str, arguments: Value) -> String {
        let caller = Caller {
            turn: turn.into(),
            ..caller()
        };
        let caller = Caller {
            inspection: self.inspect_as(&caller, tool, arguments.clone()),
            ..caller
        };
        self.call_as(&caller, tool, arguments).unwrap()
    }

    /// Runs a call of this caller.
    pub(crate) fn call_as(
        &self,
        caller: &Caller,
        tool: &str,
        arguments: Value,
    ) -> Result<String, ToolError> {
        let (tool, caller) = (self.tool(tool), caller.clone());
        on_a_thread(move |runtime| {
            let result = runtime.block_on(tool.run(&caller, Arc::new(arguments)));
            result.map(|output| output.text)
        })
    }

    /// Runs a call without inspection and returns its whole output.
    pub(crate) fn output(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.tool(tool);
        on_a_thread(move |runtime| runtime.block_on(tool.run(&caller(), Arc::new(arguments))))
    }

    pub(crate) fn inspect(&self, tool: &str, arguments: Value) -> Inspection {
        self.inspect_as(&caller(), tool, arguments)
    }

    /// Inspects a call of this caller.
    pub(crate) fn inspect_as(&self, caller: &Caller, tool: &str, arguments: Value) -> Inspection {
        let (tool, caller) = (self.tool(tool), caller.clone());
        on_a_thread(move |runtime| runtime.block_on(tool.inspect(&caller, Arc::new(arguments))))
    }

    /// Runs a call as if this had been the result of its inspection.
    pub(crate) fn call_inspected(
        &self,
        tool: &str,
        arguments: Value,
        inspection: Inspection,
    ) -> Result<String, ToolError> {
        let caller = Caller {
            inspection,
            ..caller()
        };
        self.call_as(&caller, tool, arguments)
    }

    pub(crate) fn preview(&self, tool: &str, arguments: Value) -> Option<String> {
        self.preview_of(tool, arguments, PreviewLength::Short)
    }

    pub(crate) fn preview_of(
        &self,
        tool: &str,
        arguments: Value,
        length: PreviewLength,
    ) -> Option<String> {
        let inspection = self.inspect(tool, arguments.clone());
        self.preview_inspected(tool, arguments, PreviewRequest { length, inspection })
    }

    /// Previews a call with this result of its inspection.
    pub(crate) fn preview_inspected(
        &self,
        tool: &str,
        arguments: Value,
        request: PreviewRequest,
    ) -> Option<String> {
        let tool = self.tool(tool);
        on_a_thread(move |runtime| runtime.block_on(tool.preview(Arc::new(arguments), request)))
    }

    pub(crate) fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap()
    }

    pub(crate) fn error(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments)
            .expect_err("the call should fail")
            .message
    }
}

/// Runs code on a new thread with a new runtime. Panics if it takes too long.
fn on_a_thread<R: Send + 'static>(work: impl FnOnce(&Runtime) -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let _ = sender.send(work(&runtime));
    });
    receiver
        .recv_timeout(Duration::from_secs(60))
        .expect("the tool hangs or panicked")
}

/// Runs a program that creates a special file, such as `mkfifo`; returns whether it succeeded.
pub(crate) fn create_special(program: &str, arguments: &[&str], path: &Path) -> bool {
    // The path comes first, as in `mknod NAME TYPE MAJOR MINOR` and `mkfifo NAME`.
    Command::new(program)
        .arg(path)
        .args(arguments)
        .status()
        .is_ok_and(|status| status.success())
}
