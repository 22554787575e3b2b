//! A fixture for command tools: a workspace, a secret next to it, skills, and a runtime.

use crate::support::SECRET;
use lango_core::{Caller, Inspection, PreviewLength, PreviewRequest, Tool, ToolError};
use lango_net::SecretAccess;
use lango_sandbox::{HelperCommand, Launcher, Layers, Policy};
use lango_testkit::tool::caller;
use lango_tools::{
    CommandLimits, CommandProxy, CommandSetup, Commands, SkillFolder, SkillOwner, Skills,
    command_tools,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Time after which a call counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct CommandFixture {
    pub tools: Vec<Arc<dyn Tool>>,
    pub runtime: Runtime,
    root: PathBuf,
    _folder: TempDir,
}

/// Options of the fixture.
#[derive(Default)]
pub(crate) struct FixtureOptions {
    pub limits: CommandLimits,
    pub policy: Option<fn(&mut Policy, &Path)>,
    pub layers: Layers,
    pub proxy: Option<CommandProxy>,
    pub secrets: Option<SecretAccess>,
    /// Skills of the user: names and files. A `SKILL.md` is created for each unless it is among the files.
    pub skills: Vec<(&'static str, Vec<(&'static str, String)>)>,
}

impl CommandFixture {
    pub(crate) fn new() -> Self {
        Self::with(FixtureOptions::default())
    }

    pub(crate) fn with(options: FixtureOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["workspace", "outside", "data", "skills"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        std::fs::write(root.join("outside/secret.txt"), SECRET).unwrap();
        std::fs::write(root.join("data/key"), SECRET).unwrap();
        for (name, files) in options.skills {
            write_skill(&root.join("skills").join(name), name, &files);
        }
        let mut policy = Policy::of(root.join("workspace"));
        policy.hidden = vec![root.join("data")];
        if let Some(change) = options.policy {
            change(&mut policy, &root);
        }
        let helper = HelperCommand {
            program: env!("CARGO_BIN_EXE_lango-tools-helper").into(),
            arguments: Vec::new(),
        };
        let commands = Commands::new(CommandSetup {
            launcher: Launcher::new(helper).with_layers(options.layers),
            policy,
            outputs: root.join("data/outputs"),
            limits: options.limits,
            proxy: options.proxy,
            secrets: options.secrets,
        });
        let skills = Skills::find(&[SkillFolder {
            path: root.join("skills"),
            owner: SkillOwner::User,
        }]);
        let mut tools = command_tools(&commands);
        tools.extend(skills.tools(&commands));
        Self {
            tools,

            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap(),
            root,
            _folder: folder,
        }
    }

    /// Returns a path in the folder that contains the workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns a path in the workspace.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        self.root.join("workspace").join(name)
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name);
        Arc::clone(tool.unwrap_or_else(|| panic!("no tool {name}")))
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        self.call_as(&caller(), tool, arguments)
    }

    pub(crate) fn call_as(
        &self,
        who: &Caller,
        tool: &str,
        arguments: Value,
    ) -> Result<String, ToolError> {
        let who = Caller {
            inspection: self.inspect(tool, arguments.clone()),
            ..who.clone()
        };
        self.call_inspected(&who, tool, arguments)
    }

    pub(crate) fn inspect(&self, tool: &str, arguments: Value) -> Inspection {
        let (tool, who) = (self.tool(tool), caller());
        let inspecting = tool.inspect(&who, Arc::new(arguments));
        self.runtime.block_on(inspecting)
    }

    /// Runs a call with the inspection of its caller.
    pub(crate) fn call_inspected(
        &self,
        who: &Caller,
        tool: &str,
        arguments: Value,
    ) -> Result<String, ToolError> {
        let tool = self.tool(tool);
        self.runtime.block_on(async {
            let run = tool.run(who, Arc::new(arguments));
            let result = tokio::time::timeout(TIMEOUT, run).await;
            result.expect("the tool hangs").map(|output| output.text)
        })
    }

    pub(crate) fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap()
    }

    pub(crate) fn error(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        result.expect_err("the call should fail").message
    }

    pub(crate) fn preview(&self, tool: &str, arguments: Value) -> Option<String> {
        let inspection = self.inspect(tool, arguments.clone());
        self.preview_inspected(tool, arguments, inspection)
    }

    /// Previews a call with this result of its inspection.
    pub(crate) fn preview_inspected(
        &self,
        tool: &str,
        arguments: Value,
        inspection: Inspection,
    ) -> Option<String> {
        let tool = self.tool(tool);
        let request = PreviewRequest {
            length: PreviewLength::Short,
            inspection,
        };
        self.runtime
            .block_on(tool.preview(Arc::new(arguments), request))
    }

    /// Repeats a call until its text satisfies `wanted`.
    pub(crate) fn wait_for(
        &self,
        tool: &str,
        arguments: &Value,
        wanted: impl Fn(&str) -> bool,
    ) -> String {
        let start = Instant::now();
        loop {
            let text = self.text(tool, arguments.clone());
            if wanted(&text) {
                return text;
            }
            assert!(
                start.elapsed() < TIMEOUT,
                "timed out; the last text was: {text}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the text after the first line, which must start with `headline`.
pub(crate) fn after_headline<'a>(text: &'a str, headline: &str) -> &'a str {
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(first.starts_with(headline), "{text}");
    rest
}

/// Waits until a condition is true.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < TIMEOUT, "timed out until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a number of seconds to sleep that identifies a process among those of all running tests.
pub(crate) fn mark(number: &str) -> String {
    format!("{number}.{}", std::process::id())
}

/// Whether a process with this text in its arguments is running.
pub(crate) fn is_running(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|words| String::from_utf8_lossy(&words).contains(mark))
}

fn write_skill(folder: &Path, name: &str, files: &[(&str, String)]) {
    std::fs::create_dir_all(folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: Does a thing.\n---\n# How to {name}\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}
