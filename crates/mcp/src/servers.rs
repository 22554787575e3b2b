//! All servers of a configuration: their tools, what there is to say about them, and their end.

use crate::attachments::Attachments;
use crate::error::ConnectError;
use crate::names::tool_name;
use crate::oauth::{Grants, LoginError};
use crate::pins::{Book, Pending, PinError, PinnedServer, Pins, ToolState};
use crate::server::{Pauses, Server, Surroundings};
use crate::settings::{Reach, ServerSettings};
use crate::tool::{ServerTool, summary};
use futures_util::future::join_all;
use lango_core::{AgentName, Tool, ToolName};
use lango_sandbox::{Launcher, Strength};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What servers need.
#[derive(Debug)]
pub struct Setup {
    /// The servers, by id.
    pub servers: Vec<ServerSettings>,
    /// What starts programs.
    pub launcher: Launcher,
    /// How well programs are held here.
    pub strength: Strength,
    /// The file with the pins.
    pub pins: PathBuf,
    /// The file with what was granted at logins.
    pub grants: PathBuf,
    /// The folder for what is returned and is no text.
    pub attachments: PathBuf,
    /// How long a handshake may take.
    pub patience: Duration,
    /// How long a server that failed is left alone.
    pub pauses: Pauses,
    /// The names that other tools have.
    pub taken: BTreeSet<String>,
}

/// What is done about servers of which nothing is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// They are connected, all at once.
    ConnectUnpinned,
    /// They are left alone.
    PinsOnly,
}

/// All servers.
pub struct Servers {
    servers: Vec<Arc<Server>>,
    pins: Pins,
    grants: Grants,
    strength: Strength,
    tools: Vec<Arc<dyn Tool>>,
    overview: Vec<Overview>,
    warnings: Vec<String>,
}

/// What there is to say about one server without starting it.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The name it has here.
    pub id: String,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// The command, or the address.
    pub target: String,
    /// The agent that is given its tools.
    pub agent: Option<AgentName>,
    /// What it called itself; empty as long as nothing is pinned.
    pub name: String,
    /// Whether its tools are pinned.
    pub is_pinned: bool,
    /// Why it cannot be used here, if it cannot.
    pub problem: Option<String>,
    /// Its tools that are offered.
    pub tools: Vec<ToolOverview>,
}

/// One tool of a server.
#[derive(Debug, Clone)]
pub struct ToolOverview {
    /// Its name here.
    pub name: ToolName,
    /// What the server calls it.
    pub tool: String,
    /// The beginning of what the server says of it.
    pub summary: String,
    /// How it stands against its pin.
    pub state: ToolState,
    /// Stands for its description and arguments.
    pub hash: String,
}

/// What came of connecting to a server.
#[derive(Debug)]
pub struct Probe {
    /// The server.
    pub id: String,
    /// How long it took.
    pub took: Duration,
    /// What it is and offers, or why it was not connected.
    pub result: Result<Probed, ConnectError>,
    /// What its program complained about last.
    pub stderr: String,
}

/// A server that answered.
#[derive(Debug)]
pub struct Probed {
    /// The version of the protocol that it speaks.
    pub protocol: String,
    /// What it calls itself.
    pub name: String,
    /// Its tools.
    pub tools: Vec<ProbedTool>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// A tool of a server that answered.
#[derive(Debug)]
pub struct ProbedTool {
    /// Its name here.
    pub name: String,
    /// The beginning of what the server says of it.
    pub summary: String,
    /// How it stands against its pin.
    pub state: ToolState,
    /// Whether it is among those that are wanted.
    pub is_wanted: bool,
}

impl Servers {
    /// Builds the tools from the pins. Servers of which nothing is pinned are connected, or left alone.
    pub async fn open(setup: Setup, start: Start) -> Self {
        let pins = Pins::at(setup.pins);
        let attachments = Attachments::at(setup.attachments);
        let grants = Grants::at(setup.grants);
        let surroundings = Surroundings {
            launcher: setup.launcher,
            strength: setup.strength.clone(),
            pins: pins.clone(),
            attachments: attachments.clone(),
            grants: grants.clone(),
            patience: setup.patience,
            pauses: setup.pauses,
        };
        let servers: Vec<Arc<Server>> = setup
            .servers
            .into_iter()
            .map(|settings| Arc::new(Server::new(settings, surroundings.clone())))
            .collect();
        let mut all = Self {
            servers,
            pins,
            grants,
            strength: setup.strength,
            tools: Vec::new(),
            overview: Vec::new(),
            warnings: Vec::new(),
        };
        if all.servers.is_empty() {
            return all;
        }
        let book = all.pins.read().unwrap_or_else(|error| {
            all.warnings.push(error.to_string());
            Book::default()
        });
        let found = join_all(
            all.servers
                .iter()
                .map(|server| all.look(server, &book, start)),
        )
        .await;
        let mut taken = setup.taken;
        for (server, found) in all.servers.clone().into_iter().zip(found) {
            all.add(server, found, &attachments, &mut taken);
        }
        all
    }

    /// The tools.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// What there is to say about each server.
    pub fn overview(&self) -> &[Overview] {
        &self.overview
    }

    /// What a person should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Connects to the server of this name, or to all of them at once.
    pub async fn test(&self, id: Option<&str>) -> Vec<Probe> {
        let wanted = self
            .servers
            .iter()
            .filter(|server| id.is_none_or(|id| server.id() == id));
        join_all(wanted.map(|server| probe(server))).await
    }

    /// Logs in to a server at an address. `show` is given the address that the person opens in a browser; `scope` is what
    /// is asked for besides what the server names itself.
    pub async fn login(
        &self,
        id: &str,
        scope: Option<&str>,
        show: impl FnOnce(&str) + Send,
    ) -> Result<(), LoginError> {
        let server = self.servers.iter().find(|server| server.id() == id);
        let server =
            server.ok_or_else(|| LoginError::unusable(format!("there is no MCP server `{id}`")))?;
        server.login(scope, show).await
    }

    /// Forgets what was granted for a server; says whether there was any.
    pub fn logout(&self, id: &str) -> Result<bool, LoginError> {
        let forgotten = self.grants.forget(id);
        forgotten.map_err(|error| LoginError::NotKept {
            why: error.to_string(),
        })
    }

    /// What of a server waits for being accepted.
    pub fn pending(&self, id: &str) -> Result<Vec<Pending>, PinError> {
        self.pins.pending(id, self.digest(id)?)
    }

    /// Accepts what a person has seen of a server, and nothing that it listed since; gives the names of the tools.
    pub fn trust(&self, id: &str, seen: &[Pending]) -> Result<Vec<String>, PinError> {
        self.pins.accept(id, self.digest(id)?, seen)
    }

    /// Ends every server that was started.
    pub async fn close(&self) {
        join_all(self.servers.iter().map(|server| server.close())).await;
    }

    fn digest(&self, id: &str) -> Result<&str, PinError> {
        let server = self.servers.iter().find(|server| server.id() == id);
        let digest = server.map(|server| server.digest.as_str());
        digest.ok_or_else(|| PinError::NoSuchServer {
            server: id.to_owned(),
        })
    }

    /// What is known of a server, from its pins or by asking it.
    async fn look(&self, server: &Server, book: &Book, start: Start) -> Found {
        let pinned = book.of(server.id(), &server.digest).cloned();
        let needs_sandbox = matches!(server.settings.reach, Reach::Program(_));
        if let (Strength::None { why }, true) = (&self.strength, needs_sandbox) {
            let error = ConnectError::NoSandbox { why: why.clone() };
            return Found::unusable(error.to_string());
        }
        match (pinned, start) {
            (Some(pinned), _) => Found {
                pinned: Some(pinned),
                ..Found::default()
            },
            (None, Start::PinsOnly) => Found::default(),
            (None, Start::ConnectUnpinned) => match server.connect().await {
                Ok(connected) => Found {
                    pinned: Some(connected.pinned),
                    problem: None,
                    notes: connected.notes,
                },
                Err(failure) => Found::unusable(failure.line()),
            },
        }
    }

    /// Takes in what was found: an overview, warnings, and the tools whose names are free.
    fn add(
        &mut self,
        server: Arc<Server>,
        found: Found,
        attachments: &Attachments,
        taken: &mut BTreeSet<String>,
    ) {
        let id = server.id().to_owned();
        let mut warn = |text: String| self.warnings.push(format!("MCP server `{id}`: {text}"));
        if let Some(problem) = &found.problem {
            warn(problem.clone());
        }
        found.notes.into_iter().for_each(&mut warn);
        let mut tools = Vec::new();
        let pinned = found.pinned.unwrap_or_default();
        for (tool, pin) in &pinned.tools {
            let Some(form) = pin.offered().filter(|_| server.settings.wants(tool)) else {
                continue;
            };
            let name = tool_name(&server.settings.prefix, tool);
            if !taken.insert(name.clone()) {
                warn(format!(
                    "its tool `{name}` is left out, because another has that name; set mcp.servers.{id}.prefix"
                ));
                continue;
            }
            tools.push(ToolOverview {
                name: ToolName::new(name.as_str()),
                tool: tool.clone(),
                summary: summary(&form.description),
                state: pin.state(),
                hash: form.hash.clone(),
            });
            let tool = ServerTool::new(
                Arc::clone(&server),
                &name,
                tool.clone(),
                form,
                attachments.clone(),
            );
            self.tools.push(Arc::new(tool));
        }
        if let Some(wanted) = server
            .settings
            .tools
            .as_ref()
            .filter(|_| !pinned.tools.is_empty())
        {
            let missing = wanted
                .iter()
                .filter(|tool| !pinned.tools.contains_key(*tool));
            missing.for_each(|tool| warn(format!("it has no tool `{tool}`")));
        }
        self.overview
            .push(overview(&server, &pinned, found.problem, tools));
    }
}

/// What is known of a server.
#[derive(Default)]
struct Found {
    pinned: Option<PinnedServer>,
    problem: Option<String>,
    notes: Vec<String>,
}

impl Found {
    fn unusable(problem: String) -> Self {
        Self {
            problem: Some(problem),
            ..Self::default()
        }
    }
}

fn overview(
    server: &Server,
    pinned: &PinnedServer,
    problem: Option<String>,
    tools: Vec<ToolOverview>,
) -> Overview {
    let settings = &server.settings;
    Overview {
        id: settings.id.clone(),
        transport: settings.reach.word(),
        target: match &settings.reach {
            Reach::Program(program) => program.argv.join(" "),
            Reach::Address(address) => address.url.clone(),
        },
        agent: settings.agent.clone(),
        name: pinned.name.clone(),
        is_pinned: !pinned.tools.is_empty() || !pinned.name.is_empty(),
        problem,
        tools,
    }
}

async fn probe(server: &Server) -> Probe {
    let started = Instant::now();
    let connected = server.connect().await;
    let took = started.elapsed();
    let (result, stderr) = match connected {
        Err(failure) => (Err(failure.error), failure.stderr),
        Ok(connected) => {
            let tools = connected.pinned.tools.iter().filter_map(|(tool, pin)| {
                Some(ProbedTool {
                    name: tool_name(&server.settings.prefix, tool),
                    summary: summary(&pin.offered()?.description),
                    state: pin.state(),
                    is_wanted: server.settings.wants(tool),
                })
            });
            let probed = Probed {
                protocol: connected.about.protocol,
                name: connected.about.name,
                tools: tools.collect(),
                notes: connected.notes,
            };
            (Ok(probed), server.last_words())
        }
    };
    Probe {
        id: server.id().to_owned(),
        took,
        result,
        stderr,
    }
}
