//! `lango serve` and `lango web`: the server for other programs and for browsers. Programs use the A2A protocol or
//! the HTTP API; browsers use the page, which `lango web` also opens.

use super::retention::start_retention;
use crate::app::{App, Persistence};
use crate::args::ServeArguments;
use crate::config::Settings;
use crate::exit::{Exit, Failure};
use crate::screen::{self, one_line};
use crate::served_app::ServedApp;
use crate::signals::{StartSignals, StopSignals};
use crate::token::server_token;
use crate::vault::{SERVER_TOKEN, key_settings, secret_of};
use a2a::AgentSkill;
use lango_a2a::server::{Access, AgentServer, RecoveryReport, ServerLimits, ServerSettings};
use lango_api::access::digest_of;
use lango_api::{Api, ApiContext, ApiParts, Feeds};
use lango_core::{StoreError, UserId, is_loopback_host};
use lango_engine::{InterruptedTurnPolicy, RandomIds, SystemClock, Tree};
use lango_models::OfflineModel;
use lango_server::auth::Auth;
use lango_server::{
    ConnectionLimits, INPUT_MODES, Recovery, ServerContext, TaskRunner, readiness, serve,
};
use lango_store::{LiveChanges, Store};
use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How often to retry listening on a port that is in use, and the pause before each attempt.
const LISTEN_RETRIES: u32 = 20;
const LISTEN_PAUSE: Duration = Duration::from_millis(50);

/// Why the server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// For programs: no page is opened.
    Serve,
    /// For a user: prints a sign-in link and, if there is a desktop, opens it.
    Web,
    /// For a user: only prints the sign-in link.
    WebWithoutBrowser,
}

/// Runs the command.
pub async fn serve_command(
    config: Vec<String>,
    arguments: ServeArguments,
    purpose: Purpose,
) -> Result<Exit, Failure> {
    let mut start = StartSignals::listen()?;
    let flags = config.clone();
    let mut app = start
        .guard(App::load_for(config, Persistence::Everything))
        .await?;
    start.guard(app.connect()).await?;
    let endpoint = start.guard(Endpoint::of(&app, &arguments)).await?;
    let database = Arc::clone(&app.storage.database);
    let _attached = database.attach_server(&app.loaded.paths.state)?;
    let sessions = app.sessions().await?;
    app.sandbox.store_result();
    let choice = start.guard(app.choose_model()).await?;
    choice.warn();
    let model = choice.model;
    raise_open_file_limit();
    let listener = endpoint.listen().await?;
    let address = listener.local_addr()?;
    let url = endpoint.url(address);
    let mut settings = ServerSettings::new(
        "lango",
        "A self-hosted team of agents: an orchestrator that delegates to specialists",
        env!("CARGO_PKG_VERSION"),
        &url,
    );
    settings.skills = skills(&app.tree);
    settings.input_modes = INPUT_MODES.map(str::to_owned).to_vec();
    settings.access = match endpoint.token {
        Some(_) => Access::Bearer,
        None => Access::Open,
    };
    let config = &app.loaded.settings.server;
    settings.limits = ServerLimits {
        running: config.max_running_tasks as usize,
        queue: config.queue_limit as usize,
        queue_timeout: config.queue_timeout,
        streams: config.max_streams as usize,
        ..ServerLimits::default()
    };
    let bounds = ConnectionLimits {
        connections: config.max_connections as usize,
        ..ConnectionLimits::default()
    };
    let (callers, expiry) = (config.user.clone(), app.loaded.settings.approval.expiry);
    let vaults = locked_vaults(&app).await;
    let banner = banner(&app, &endpoint, address, model.name(), vaults, purpose);
    app.remote_agents.retry_in_background();
    let tasks = Arc::clone(&sessions.tasks);
    let _retention = start_retention(&app);
    let _reconciling = app.payments.start_reconciling();
    let changes = app.storage.changes.clone();
    let feeds = Feeds::new(
        Arc::clone(&sessions.store),
        Arc::clone(&sessions.catalog),
        Arc::new(LiveChanges(Arc::clone(&database))),
    );
    let max_streams = config.max_streams as usize;
    let max_running = config.max_running_tasks as usize;
    let interrupted = if arguments.no_recovery {
        InterruptedTurnPolicy::Ask
    } else {
        InterruptedTurnPolicy::Resume
    };
    let owner = app.user();
    let app = ServedApp::new(app, sessions, model, interrupted, Arc::clone(&feeds), flags)?;
    let app = Arc::new(app);
    let context = Arc::clone(&app) as Arc<dyn ServerContext>;
    let task_runner = Arc::new(TaskRunner::new(Arc::clone(&context)));
    let clock = Arc::new(SystemClock);
    let server = AgentServer::new(task_runner, Arc::clone(&tasks), clock, settings);
    app.set_server(server.clone());
    let recovered = server.recover().await?;
    server.watch(changes);
    let token = endpoint.token.as_ref().map(|token| token.text.as_str());
    let api = Api::new(ApiParts {
        context: Arc::clone(&app) as Arc<dyn ApiContext>,
        server: Arc::clone(&context),
        store: Arc::clone(&database),
        feeds,
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        a2a_token: token.map(digest_of),
        max_running,
        max_streams,
        is_https: url.starts_with("https://"),
    });
    let auth = Auth::new(token, endpoint.user).with_hosts(endpoint.hosts);
    let router = api
        .router_beside(auth.require_token(server.router()))
        .merge(readiness(Arc::clone(&context), server.clone()));
    let router = auth.guard(router);
    let mut signals = StopSignals::listen()?;
    screen::say(&banner);
    if purpose != Purpose::Serve {
        let link = super::tokens::new_link(&database, &owner, &url).await?;
        let shown = crate::logs::link_to_show(&link);
        screen::say(&format!(
            "page    {shown} (signs in one browser; valid for 10 minutes)"
        ));
        if purpose == Purpose::Web {
            open_browser(&link);
        }
    }
    report_recovered(&recovered);
    let grace = arguments.grace.0;
    let stop = async {
        signals.next().await;
        api.end_streams();
        screen::say("stopping after running tasks finish; press ctrl-c again to stop now");
        tokio::select! {
            () = server.stop(grace) => {}
            _ = signals.next() => server.stop(Duration::ZERO).await,
        }
    };
    let recovery = Recovery::new(server.clone(), context, tasks, app.users()).with_expiry(
        callers,
        expiry,
        Arc::new(SystemClock),
    );
    let served = tokio::select! {
        () = serve(listener, router, bounds, stop) => Ok(Exit::Ok),
        () = recovery.run() => Ok(Exit::Ok),
        error = wait_for_newer_schema(&database) => Err(error),
    };
    if served.is_err() {
        server.stop(Duration::ZERO).await;
    }
    app.close().await;
    // Users can then move or copy the database file alone. If the checkpoint fails, the next start replays the log.
    let _ = database.checkpoint_log().await;
    screen::say("stopped");
    served
}

/// Opens a link in the desktop's browser, if there is a desktop. Failure is ignored, because the link has been
/// printed.
fn open_browser(link: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if has_desktop || cfg!(target_os = "macos") {
        let program = if cfg!(target_os = "macos") {
            "open"
        } else {
            "xdg-open"
        };
        let mut command = tokio::process::Command::new(program);
        let command = command.arg(link).stdin(Stdio::null());
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
}

/// Interval between checks of the schema version.
const SCHEMA_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Waits until a newer version of lango has migrated the database. After that, this process must not write to it.
async fn wait_for_newer_schema(database: &Store) -> Failure {
    loop {
        tokio::time::sleep(SCHEMA_CHECK_INTERVAL).await;
        // Other failures are reported by the code that needs the database.
        if let Err(error @ StoreError::TooNew { .. }) = database.check_schema().await {
            let message =
                format!("a newer lango has upgraded the database, so this server stops: {error}");
            return Failure::new(Exit::Config, message).next("start the newer lango");
        }
    }
}

/// Describes the vaults that are needed but locked: what does not work, and how to unlock them. A running server
/// never asks for a passphrase.
async fn locked_vaults(app: &App) -> Vec<String> {
    let settings = &app.loaded.settings;
    let mut lines = Vec::new();
    for user in app.users() {
        let mut effects = Vec::new();
        if user == app.user() && names_secrets(settings) {
            effects.push("keys and tokens with `secret:NAME` in the configuration are not used");
        }
        if user == settings.server.user {
            effects.push("agents cannot use its secrets");
        }
        if effects.is_empty() {
            continue;
        }
        let effects = effects.join(", and ");
        lines.push(match app.vaults.locked_vault(&user).await {
            Ok(None) => continue,
            Ok(Some(locked)) => {
                let (status, next) = (locked.status(), locked.next_step());
                format!("vault   {status}; {effects} until it is unlocked: {next}")
            }
            Err(failure) => format!("vault   {}: {effects}", failure.message()),
        });
    }
    lines
}

/// Returns whether the configuration names a secret of the vault as a key or token.
fn names_secrets(settings: &Settings) -> bool {
    let named = key_settings(settings);
    named
        .iter()
        .any(|setting| secret_of(setting.value).is_some())
}

/// Raises the limit of open files as far as the system allows: each connection and each active session needs one.
fn raise_open_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = maximum;
    // If this fails, connections beyond the limit wait.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
}

/// Prints what became of the tasks of an earlier run.
fn report_recovered(recovered: &RecoveryReport) {
    if recovered.resumed > 0 {
        let tasks = screen::count(recovered.resumed as u64, "task");
        screen::say(&format!("resumed from an earlier run: {tasks}"));
    }
    if recovered.settled > 0 {
        let tasks = screen::count(recovered.settled as u64, "task");
        screen::say(&format!("ended or waiting since an earlier run: {tasks}"));
    }
    if recovered.skipped > 0 {
        let tasks = screen::count(recovered.skipped as u64, "task");
        screen::say(&format!(
            "skipped for now, or running on another replica: {tasks}"
        ));
    }
    if !recovered.damaged.is_empty() {
        let ids = recovered.damaged.join(", ");
        screen::say(&format!("warning tasks that cannot be read: {ids}"));
    }
}

/// The address of the server, and who may call it.
struct Endpoint {
    host: String,
    port: u16,
    hosts: Vec<String>,
    public_url: Option<String>,
    token: Option<Token>,
    user: UserId,
}

struct Token {
    text: String,
    /// Where the token is stored, for display.
    location: String,
}

impl Token {
    /// Returns the token from the file, else the one from the vault, else creates one in the file.
    async fn of(app: &App) -> Result<Self, Failure> {
        let file = app.loaded.paths.server_token();
        let in_vault = if file.exists() {
            None
        } else {
            app.vault.server_token().await?
        };
        Ok(match in_vault {
            Some(text) => Self {
                text,
                location: format!(
                    "in the vault, as {SERVER_TOKEN}; `lango secrets rotate {SERVER_TOKEN}` replaces it with one of your choice"
                ),
            },
            None => Self {
                text: server_token(&file)?,
                location: format!("in {}", file.display()),
            },
        })
    }
}

impl Endpoint {
    async fn of(app: &App, arguments: &ServeArguments) -> Result<Self, Failure> {
        let config = &app.loaded.settings.server;
        let host = arguments.host.clone().or_else(|| config.host.clone());
        let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
        let port = match arguments.port {
            Some(port) => port,
            None => u16::try_from(config.port).map_err(|_| {
                let message = format!("server.port is {}; the highest is 65535", config.port);
                Failure::new(Exit::Config, message)
            })?,
        };
        if !config.require_token && !is_loopback_host(&host) {
            let message = format!(
                "a server without a token may only listen on this machine, not on `{host}`"
            );
            return Err(Failure::new(Exit::Config, message)
                .next("set server.requireToken = true, or server.host = \"127.0.0.1\""));
        }
        let token = if config.require_token {
            Some(Token::of(app).await?)
        } else {
            None
        };
        let mut hosts = config.hosts.clone();
        if !matches!(host.as_str(), "0.0.0.0" | "::") {
            hosts.push(host.clone());
        }
        hosts.extend(
            config
                .public_url
                .as_deref()
                .and_then(host_of)
                .map(str::to_owned),
        );
        Ok(Self {
            host,
            port,
            hosts,
            public_url: config.public_url.clone(),
            token,
            user: config.user.clone(),
        })
    }

    async fn listen(&self) -> Result<TcpListener, Failure> {
        let address = (self.host.as_str(), self.port);
        let mut bound = TcpListener::bind(address).await;
        for _ in 0..LISTEN_RETRIES {
            match &bound {
                // A command that a killed server had just started still occupies the port for a moment.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    tokio::time::sleep(LISTEN_PAUSE).await;
                    bound = TcpListener::bind(address).await;
                }
                _ => break,
            }
        }
        bound.map_err(|error| {
            let message = format!("cannot listen on {}:{}: {error}", self.host, self.port);
            let failure = Failure::new(Exit::Config, message);
            match error.kind() {
                io::ErrorKind::AddrInUse => failure.next(
                    "if lango already runs there, `lango tokens link` prints a link to its page; `--port 0` picks a free port",
                ),
                _ => failure.next(
                    "run `lango config show --origin` to see where server.host and server.port are set",
                ),
            }
        })
    }

    fn url(&self, address: SocketAddr) -> String {
        match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{address}"),
        }
    }
}

/// Returns the host of a URL.
fn host_of(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    rest.split(['/', '?', '#']).next()
}

/// Returns the skills for the agent card: the purpose of each agent.
fn skills(tree: &Tree) -> Vec<AgentSkill> {
    let agents = if tree.agents.is_empty() {
        std::slice::from_ref(&tree.root)
    } else {
        &tree.agents[..]
    };
    let skill = |agent: &lango_engine::Agent| AgentSkill {
        id: agent.name.to_string(),
        name: agent.name.to_string(),
        description: agent.description.to_string(),
        tags: vec![agent.name.to_string()],
        examples: None,
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    };
    // lango cannot promise the skills of remote agents.
    let own = agents.iter().filter(|agent| !agent.is_remote);
    own.map(skill).collect()
}

/// Returns the opening text of `lango serve`: address, token, model, agents, locked vaults and warnings.
fn banner(
    app: &App,
    endpoint: &Endpoint,
    address: SocketAddr,
    model: &str,
    vaults: Vec<String>,
    purpose: Purpose,
) -> String {
    let url = endpoint.url(address);
    let mut lines = vec![
        format!(
            "lango {} serves A2A 1.0, its API and its page at {url}",
            env!("CARGO_PKG_VERSION")
        ),
        format!("card    {url}/.well-known/agent-card.json"),
    ];
    if endpoint.public_url.is_some() {
        lines.push(format!("listens on http://{address}"));
    }
    if purpose == Purpose::Serve {
        lines.push(format!(
            "page    {url}/ (`lango tokens link --url {url}` prints a link that signs a browser in)"
        ));
    }
    lines.push(format!(
        "api     {url}/api/openapi.json (`lango tokens create NAME` creates a token for it)"
    ));
    lines.push(match &endpoint.token {
        Some(token) => format!(
            "token   for A2A: {} (send it as `Authorization: Bearer …`)",
            token.location
        ),
        None => "token   none: every program on this machine can call it".to_owned(),
    });
    lines.push(match model {
        OfflineModel::NAME => format!("model   {model} - built-in rules, not an AI model"),
        _ => format!("model   {model}"),
    });
    let agents: Vec<&str> = app
        .tree
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    lines.push(if agents.is_empty() {
        format!("agent   {}", app.tree.root.name)
    } else {
        format!("agents  {}", agents.join(" · "))
    });
    if endpoint.public_url.is_none() && matches!(endpoint.host.as_str(), "0.0.0.0" | "::") {
        lines.push(format!(
            "warning the agent card says {url}, which other machines cannot reach; set server.publicUrl to an address that they can"
        ));
    }
    let notice = app.sandbox_notice();
    lines.extend(notice.map(|notice| format!("sandbox {notice}")));
    lines.extend(vaults);
    let warnings = app.warnings().into_iter();
    lines.extend(warnings.map(|warning| format!("warning {}", one_line(&warning, 300))));
    lines.push("calls that need approval: `lango approvals` · ctrl-c stops".to_owned());
    lines.join("\n")
}
