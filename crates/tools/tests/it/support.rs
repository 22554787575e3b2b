//! A workspace in a folder of its own, beside a secret that no tool may reach.

use lango_core::{Caller, Extent, Inspection, Tool, ToolError, ToolOutput};
use lango_sandbox::Policy;
use lango_testkit::tool::caller;
use lango_tools::{Trash, TrashError, Trashed, Workspace, file_tools};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// What is written in the file outside the workspace.
pub const SECRET: &str = "the secret outside";

/// A folder `workspace` and, beside it, `outside/secret.txt`; the trash is elsewhere.
pub struct Bench {
    folder: TempDir,
    _trash_folder: TempDir,
    workspace: Workspace,
    trash: Trash,
    tools: Vec<Arc<dyn Tool>>,
}

impl Bench {
    pub fn new() -> Self {
        Self::with_policy(|_, _| {})
    }

    /// With a policy that is changed first; it is told the folder that everything lies in.
    pub fn with_policy(change: impl FnOnce(&mut Policy, &Path)) -> Self {
        let (folder, trash) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Self::in_folder(folder, trash, change)
    }

    /// With the trash in another folder, which may be on another file system.
    pub fn in_folder(
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
        Self {
            tools: file_tools(&workspace, &trash),
            workspace,
            trash,
            folder,
            _trash_folder: trash_folder,
        }
    }

    pub fn trash(&self) -> &Trash {
        &self.trash
    }

    pub fn restore(&self, id: &str) -> Result<Trashed, TrashError> {
        self.trash.restore(&self.workspace, id)
    }

    /// The path of something in the workspace.
    pub fn inside(&self, name: &str) -> PathBuf {
        self.folder.path().join("workspace").join(name)
    }

    /// The path of something beside the workspace.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join("outside").join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.inside(name)).unwrap()
    }

    pub fn has(&self, name: &str) -> bool {
        self.inside(name).symlink_metadata().is_ok()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.inside(name).parent().unwrap()).unwrap();
        std::fs::write(self.inside(name), content).unwrap();
    }

    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.inside(name)).unwrap();
    }

    pub fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name);
        Arc::clone(tool.unwrap())
    }

    /// Runs a tool after it was inspected; one that hangs fails the test instead of stopping it.
    pub fn call(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        let inspection = self.inspect(tool, arguments.clone());
        self.call_inspected(tool, arguments, inspection)
    }

    /// All that a call gives back.
    pub fn output(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.tool(tool);
        on_a_thread(move |runtime| runtime.block_on(tool.run(&caller(), Arc::new(arguments))))
    }

    /// What a call would touch.
    pub fn inspect(&self, tool: &str, arguments: Value) -> Inspection {
        let tool = self.tool(tool);
        on_a_thread(move |runtime| runtime.block_on(tool.inspect(&caller(), Arc::new(arguments))))
    }

    /// Runs a tool as if this had been found before the call was allowed.
    pub fn call_inspected(
        &self,
        tool: &str,
        arguments: Value,
        inspection: Inspection,
    ) -> Result<String, ToolError> {
        let tool = self.tool(tool);
        let caller = Caller {
            inspection,
            ..caller()
        };
        on_a_thread(move |runtime| {
            let result = runtime.block_on(tool.run(&caller, Arc::new(arguments)));
            result.map(|output| output.text)
        })
    }

    /// What a person is shown before the call.
    pub fn preview(&self, tool: &str, arguments: Value) -> Option<String> {
        self.preview_of(tool, arguments, Extent::Short)
    }

    pub fn preview_of(&self, tool: &str, arguments: Value, extent: Extent) -> Option<String> {
        let tool = self.tool(tool);
        on_a_thread(move |runtime| runtime.block_on(tool.preview(Arc::new(arguments), extent)))
    }

    pub fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap()
    }

    pub fn error(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments)
            .expect_err("the call should fail")
            .message
    }
}

/// Runs something with a runtime of its own.
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

/// Runs a program that prepares a file; says whether it could.
pub fn prepared(program: &str, arguments: &[&str], path: &Path) -> bool {
    // The path comes second for `mknod NAME TYPE MAJOR MINOR`, and is all there is for `mkfifo NAME`.
    Command::new(program)
        .arg(path)
        .args(arguments)
        .status()
        .is_ok_and(|status| status.success())
}
