//! `lango agents`: lists the agents with their tools, and the unavailable agents with the reason. It also prints the
//! instruction of an agent.

use crate::args::{AgentsArguments, AgentsCommand};
use crate::exit::Exit;
use crate::screen::{self, Layout};
use lango::app::App;
use lango::app::Failure;
use lango::app::agents::{as_json, model_of, settings_of, skipped_agents, source_of};
use lango::app::roster::{self, Roster};
use lango_config::ProcessEnv;
use lango_config::text_file;
use lango_core::text::sanitize;
use lango_core::{AgentName, Effect, Risk, ToolName, ToolSpec, Trust};
use lango_engine::{Agent, AgentFile, Topology, Tree, TreeError, TreeMode};
use serde::Deserialize;
use serde_json::json;
use std::fmt::{Display, Write};
use std::fs::File;
use std::io::{IsTerminal, Write as _};
use std::path::Path;
use std::sync::Arc;

/// The largest tool list that is accepted.
const LARGEST_LIST_KIB: u64 = 1024;

/// Runs the command.
pub(super) async fn agents(
    config: Vec<String>,
    arguments: AgentsArguments,
) -> Result<Exit, Failure> {
    if let Some(AgentsCommand::New { name, project }) = &arguments.command {
        return new_file(config, name, *project);
    }
    let mut app = App::load(config).await?;
    app.connect().await?;
    let tree = match &arguments.tools {
        Some(file) => Arc::new(tree_with_listed_tools(&app, file)?),
        None => Arc::clone(&app.tree),
    };
    let text = match &arguments.instruction {
        Some(name) => instruction_of(&tree, name)?,
        None if arguments.json => {
            let mut tree = as_json(&tree, &app);
            tree["absent_tools"] = json!(app.absent_tools());
            tree["unheard_files"] = json!(app.roster.untrusted_files);
            tree["unused_files"] = json!(app.roster.unused);
            screen::json(&tree, Layout::Indented)?
        }
        None => {
            let mut text = as_text(&tree, &app);
            if let Some(absent) = app.absent_tools() {
                let _ = write!(text, "\nunavailable tools: {absent}");
            }
            if let Some(unused) = unused_files(&tree, &app.roster) {
                let _ = write!(text, "\n{unused}");
            }
            if let Some(warning) = app.untrusted_files_warning() {
                let _ = write!(text, "\n{warning}");
            }
            sanitize(&text).into_owned()
        }
    };
    screen::print(&text)?;
    Ok(Exit::Ok)
}

/// Writes the file of a new agent, or of a built-in one with its current content. An existing file is never
/// overwritten.
fn new_file(config: Vec<String>, name: &str, project: bool) -> Result<Exit, Failure> {
    let process_env = ProcessEnv::from_process(config)?;
    let loaded = lango_config::load(&process_env)?;
    let agent = AgentName::from(name);
    AgentFile::check_name(&agent)
        .map_err(|detail| Failure::usage(detail).next("lango agents new researcher"))?;
    let folder = if project {
        loaded.paths.project_agents(&process_env.cwd)
    } else {
        roster::agents_dir(&loaded)
    };
    let path = folder.join(format!("{name}.md"));
    let built_in = match &loaded.settings.agent.topology {
        lango_config::TopologyChoice::Named(name) => Topology::built_in(name).ok(),
        lango_config::TopologyChoice::File(_) => None,
    };
    if built_in
        .as_ref()
        .is_some_and(|topology| topology.root == agent)
    {
        let message = format!("`{agent}` is the name of the orchestrator");
        return Err(Failure::usage(message).next("lango agents new researcher"));
    }
    let mut specs = built_in.iter().flat_map(|topology| &topology.agents);
    let text = AgentFile::template(&agent, specs.find(|spec| spec.name == agent));
    let written = std::fs::create_dir_all(&folder).and_then(|()| {
        let mut options = File::options();
        let mut file = options.write(true).create_new(true).open(&path)?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| {
        let message = format!("`{}` cannot be written: {error}", path.display());
        Failure::usage(message).next("choose another name, or edit the existing file")
    })?;
    screen::print(&path.display().to_string())?;
    screen::say("edit it as you like; `lango agents` shows the result");
    if project {
        screen::say("run `lango config trust` to activate it; do so again after each change");
    }
    Ok(Exit::Ok)
}

/// One entry of a tool list: a name, or a name with a description.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "an entry is neither a name nor an object with a `name`"
)]
enum ListedTool {
    Name(String),
    Described {
        name: String,
        #[serde(default)]
        description: String,
    },
}

/// Builds the tree for the tools in this file. Errors that no change of the configuration could fix are reported as
/// errors in the file.
fn tree_with_listed_tools(app: &App, file: &Path) -> Result<Tree, Failure> {
    let unusable = |detail: &dyn Display| {
        let message = format!(
            "the tool list `{}` cannot be used: {detail}",
            file.display()
        );
        Failure::usage(message).next(
            r#"give a JSON list such as ["fs_read", {"name": "search_web", "description": "…"}]"#,
        )
    };
    let text = if file.as_os_str() == "-" {
        text_file::read(std::io::stdin(), LARGEST_LIST_KIB)
    } else {
        File::open(file).and_then(|file| text_file::read(file, LARGEST_LIST_KIB))
    };
    let text = text.map_err(|error| unusable(&error))?;
    let listed: Vec<ListedTool> = serde_json::from_str(&text).map_err(|error| unusable(&error))?;
    let tools = listed.into_iter().map(|tool| Arc::new(spec_of(tool)));
    app.tree_with_tools(tools.collect())
        .map_err(|error| match error {
            TreeError::DuplicateTool { .. } | TreeError::BadToolName { .. } => unusable(&error),
            error => error.into(),
        })
}

fn spec_of(tool: ListedTool) -> ToolSpec {
    let (name, description) = match tool {
        ListedTool::Name(name) => (name, String::new()),
        ListedTool::Described { name, description } => (name, description),
    };
    ToolSpec {
        name: ToolName::new(name),
        description: description.into(),
        parameters: json!({ "type": "object" }).into(),
        effect: Effect::NonIdempotent,
        risk: Risk::Dangerous,
        escalation: None,
        subject: Default::default(),
        trust: Trust::Untrusted,
    }
}

fn instruction_of(tree: &Tree, name: &str) -> Result<String, Failure> {
    let names = || {
        let names = std::iter::once(&tree.root)
            .chain(&tree.agents)
            .map(|agent| agent.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let agent = tree.agent(name).ok_or_else(|| {
        Failure::usage(format!(
            "there is no agent `{name}`; the agents are: {}",
            names()
        ))
        .next(format!("lango agents --instruction {}", tree.root.name))
    })?;
    Ok(if std::io::stdout().is_terminal() {
        sanitize(&agent.instruction).into_owned()
    } else {
        agent.instruction.to_string()
    })
}

/// Describes agent files that are not used, and why.
fn unused_files(tree: &Tree, roster: &Roster) -> Option<String> {
    let files = roster.unused.iter().map(|path| path.display().to_string());
    let files: Vec<String> = files.collect();
    let why = match tree.mode {
        TreeMode::Single => "a single agent runs".to_owned(),
        TreeMode::Multi => format!("the topology {} defines its own agents", tree.topology),
    };
    (!files.is_empty()).then(|| format!("not used, because {why}: {}", files.join(", ")))
}

pub(super) fn as_text(tree: &Tree, app: &App) -> String {
    let roster = &app.roster;
    let mut text = match tree.mode {
        TreeMode::Multi => format!("{} ({} topology)\n", tree.root.name, tree.topology),
        TreeMode::Single => format!("{} (single agent)\n", tree.root.name),
    };
    if !tree.root.tools.is_empty() {
        let _ = writeln!(text, "  tools: {}", tool_names(&tree.root));
    }
    let settings = settings_of(&tree.root, app);
    if !settings.is_default() {
        let _ = writeln!(text, "  settings: {settings}");
    }
    for (at, agent) in tree.agents.iter().enumerate() {
        let is_last = at + 1 == tree.agents.len();
        let (branch, rest) = if is_last {
            ("└─", "  ")
        } else {
            ("├─", "│ ")
        };
        let place = if agent.is_remote { " (remote)" } else { "" };
        let _ = writeln!(
            text,
            "{branch} {}{place}  {}",
            agent.name, agent.description
        );
        if !agent.tools.is_empty() {
            let _ = writeln!(text, "{rest}   tools: {}", tool_names(agent));
        }
        if let Some(model) = model_of(agent, roster) {
            let _ = writeln!(text, "{rest}   model: {model}");
        }
        let settings = settings_of(agent, app);
        if !settings.is_default() {
            let _ = writeln!(text, "{rest}   settings: {settings}");
        }
        let _ = writeln!(text, "{rest}   from: {}", source_of(agent, roster));
    }
    for skipped in skipped_agents(tree) {
        let _ = writeln!(text, "unavailable: {skipped}");
    }
    if !tree.unmatched.is_empty() {
        let names: Vec<&str> = tree.unmatched.iter().map(|name| name.as_str()).collect();
        let _ = writeln!(
            text,
            "not assigned to any agent, so they cannot run: {}",
            names.join(", ")
        );
    }
    text.truncate(text.trim_end().len());
    text
}

fn tool_names(agent: &Agent) -> String {
    agent
        .tools
        .iter()
        .map(|tool| tool.spec.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
