//! A workspace, a secret beside it, skills, and the tools that run commands, on a runtime of their own.

use crate::support::SECRET;
use lango_core::{Caller, Extent, Tool, ToolError};
use lango_net::SecretAccess;
use lango_sandbox::{Helper, Launcher, Layers, Policy};
use lango_testkit::tool::caller;
use lango_tools::{
    CommandLimits, CommandProxy, CommandSetup, Commands, SkillFolder, Skills, Whose, command_tools,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The longest that anything here may take; what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct CommandBench {
    pub tools: Vec<Arc<dyn Tool>>,
    pub runtime: Runtime,
    root: PathBuf,
    _folder: TempDir,
}

/// What a bench is made with, besides what every one has.
#[derive(Default)]
pub struct Ask {
    pub limits: CommandLimits,
    pub policy: Option<fn(&mut Policy, &Path)>,
    pub layers: Layers,
    pub proxy: Option<CommandProxy>,
    pub secrets: Option<SecretAccess>,
    /// Skills of the user's, by name: the files of each, besides a `SKILL.md` that is made if it is not among them.
    pub skills: Vec<(&'static str, Vec<(&'static str, String)>)>,
}

impl CommandBench {
    pub fn new() -> Self {
        Self::with(Ask::default())
    }

    pub fn with(ask: Ask) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["workspace", "outside", "data", "skills"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        std::fs::write(root.join("outside/secret.txt"), SECRET).unwrap();
        std::fs::write(root.join("data/key"), SECRET).unwrap();
        for (name, files) in ask.skills {
            write_skill(&root.join("skills").join(name), name, &files);
        }
        let mut policy = Policy::of(root.join("workspace"));
        policy.hidden = vec![root.join("data")];
        if let Some(change) = ask.policy {
            change(&mut policy, &root);
        }
        let helper = Helper {
            program: env!("CARGO_BIN_EXE_lango-tools-helper").into(),
            arguments: Vec::new(),
        };
        let commands = Commands::new(CommandSetup {
            launcher: Launcher::new(helper).with_layers(ask.layers),
            policy,
            outputs: root.join("data/outputs"),
            limits: ask.limits,
            proxy: ask.proxy,
            secrets: ask.secrets,
        });
        let skills = Skills::find(&[SkillFolder {
            path: root.join("skills"),
            whose: Whose::User,
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

    /// The path of something beside the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The path of something in the workspace.
    pub fn inside(&self, name: &str) -> PathBuf {
        self.root.join("workspace").join(name)
    }

    pub fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name);
        Arc::clone(tool.unwrap_or_else(|| panic!("no tool {name}")))
    }

    pub fn call(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        self.call_as(&caller(), tool, arguments)
    }

    pub fn call_as(&self, who: &Caller, tool: &str, arguments: Value) -> Result<String, ToolError> {
        let tool = self.tool(tool);
        self.runtime.block_on(async {
            let arguments = Arc::new(arguments);
            let inspection = tool.inspect(&caller(), Arc::clone(&arguments)).await;
            let who = Caller {
                inspection,
                ..who.clone()
            };
            let run = tool.run(&who, arguments);
            let result = tokio::time::timeout(PATIENCE, run).await;
            result.expect("the tool hangs").map(|output| output.text)
        })
    }

    pub fn text(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap()
    }

    pub fn error(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        result.expect_err("the call should fail").message
    }

    pub fn preview(&self, tool: &str, arguments: Value) -> Option<String> {
        let tool = self.tool(tool);
        self.runtime
            .block_on(tool.preview(Arc::new(arguments), Extent::Short))
    }

    /// Asks a tool again and again until its text is as wanted.
    pub fn wait_for(&self, tool: &str, arguments: &Value, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let text = self.text(tool, arguments.clone());
            if wanted(&text) {
                return text;
            }
            assert!(start.elapsed() < PATIENCE, "it never came: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What comes after the first line, which must begin so.
pub fn after_headline<'a>(text: &'a str, headline: &str) -> &'a str {
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(first.starts_with(headline), "{text}");
    rest
}

/// Waits until something is true of the machine.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it never came: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A number of seconds to sleep by which a process is known among those of all tests that run now.
pub fn mark(number: &str) -> String {
    format!("{number}.{}", std::process::id())
}

/// Whether a process of this machine has this text among its arguments.
pub fn is_running(mark: &str) -> bool {
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
