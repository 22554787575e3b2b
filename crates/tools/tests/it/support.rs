//! A workspace in a folder of its own, beside a secret that no tool may reach.

use lango_core::{Tool, ToolError};
use lango_testkit::tool::caller;
use lango_tools::{Workspace, file_tools};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;

/// What is written in the file outside the workspace.
pub const SECRET: &str = "the secret outside";

/// A folder `workspace` and, beside it, `outside/secret.txt`.
pub struct Bench {
    folder: TempDir,
    tools: Vec<Arc<dyn Tool>>,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        std::fs::write(folder.path().join("outside/secret.txt"), SECRET).unwrap();
        let workspace = Workspace::open(folder.path().join("workspace")).unwrap();
        Self {
            tools: file_tools(&workspace),
            folder,
        }
    }

    /// The path of something in the workspace.
    pub fn inside(&self, name: &str) -> PathBuf {
        self.folder.path().join("workspace").join(name)
    }

    /// The path of something beside the workspace.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join("outside").join(name)
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

    /// Runs a tool; one that hangs fails the test instead of stopping it.
    pub fn call(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        let tool = self.tool(tool);
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            let result = runtime.block_on(tool.run(&caller(), Arc::new(arguments)));
            let _ = sender.send(result.map(|output| output.text));
        });
        receiver
            .recv_timeout(Duration::from_secs(60))
            .expect("the tool hangs or panicked")
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

/// Runs a program that prepares a file; says whether it could.
pub fn prepared(program: &str, arguments: &[&str], path: &Path) -> bool {
    // The path comes second for `mknod NAME TYPE MAJOR MINOR`, and is all there is for `mkfifo NAME`.
    Command::new(program)
        .arg(path)
        .args(arguments)
        .status()
        .is_ok_and(|status| status.success())
}
