//! The server: the page, the HTTP API, OpenAI's protocols and A2A, with recovery and retention in the background.
//!
//! [`PreparedServer`] listens but answers nothing yet; [`Server::run`] answers until it is stopped.

mod endpoint;
mod link;

use crate::app::model_selector::ChosenModel;
use crate::app::payment::ReconcileTask;
use crate::app::retention::{RetentionTask, start_retention};
use crate::app::served_app::ServedApp;
use crate::app::sessions::Sessions;
use crate::app::{App, Failure};
use a2a::AgentSkill;
pub use endpoint::{Endpoint, EndpointToken};
use lango_a2a::server::{Access, AgentServer, RecoveryReport, ServerLimits, ServerSettings};
use lango_api::access::digest_of;
use lango_api::{Api, ApiContext, ApiParts, Feeds};
use lango_core::StoreError;
use lango_engine::{InterruptedTurnPolicy, RandomIds, SystemClock, Tree};
use lango_server::auth::Auth;
use lango_server::{
    ConnectionLimits, INPUT_MODES, Recovery, ServerContext, TaskRunner, readiness, serve,
};
use lango_store::{LiveChanges, ServerLock, Store};
pub use link::{link_address, new_link, revoke_token};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// A server that listens, but answers nothing yet.
pub struct PreparedServer {
    pub app: App,
    pub endpoint: Endpoint,
    pub choice: ChosenModel,
    /// The address that it listens on.
    pub address: SocketAddr,
    listener: TcpListener,
    sessions: Sessions,
    interrupted: InterruptedTurnPolicy,
    lock: Option<ServerLock>,
}

impl PreparedServer {
    /// Opens the database, chooses the model and listens.
    pub async fn open(
        app: App,
        endpoint: Endpoint,
        interrupted: InterruptedTurnPolicy,
    ) -> Result<Self, Failure> {
        let lock = app
            .storage
            .database
            .attach_server(&app.loaded.paths.state)?;
        let sessions = app.sessions().await?;
        app.sandbox.store_result();
        let choice = app.choose_model().await?;
        raise_open_file_limit();
        let listener = endpoint.listen().await?;
        Ok(Self {
            address: listener.local_addr()?,
            app,
            endpoint,
            choice,
            listener,
            sessions,
            interrupted,
            lock,
        })
    }

    /// Returns the address that callers use.
    pub fn url(&self) -> String {
        self.endpoint.url(self.address)
    }

    /// Recovers the tasks of an earlier run and starts what runs in the background. `flags` are the configuration flags
    /// for checks that read the configuration again.
    pub async fn start(self, flags: Vec<String>) -> Result<Server, Failure> {
        let (url, settings) = (self.url(), self.settings());
        let Self {
            mut app,
            endpoint,
            choice,
            listener,
            sessions,
            interrupted,
            lock,
            ..
        } = self;
        let config = &app.loaded.settings.server;
        let connections = ConnectionLimits {
            connections: config.max_connections as usize,
            ..ConnectionLimits::default()
        };
        let (max_streams, max_running) = (
            config.max_streams as usize,
            config.max_running_tasks as usize,
        );
        let (callers, expiry) = (config.user.clone(), app.loaded.settings.approval.expiry);
        app.remote_agents.retry_in_background();
        let database = Arc::clone(&app.storage.database);
        let tasks = Arc::clone(&sessions.tasks);
        let background = BackgroundTasks {
            _retention: start_retention(&app),
            _reconciling: app.payments.start_reconciling(),
            _lock: lock,
        };
        let changes = app.storage.changes.clone();
        let feeds = Feeds::new(
            Arc::clone(&sessions.store),
            Arc::clone(&sessions.catalog),
            Arc::new(LiveChanges(Arc::clone(&database))),
        );
        let app = ServedApp::new(
            app,
            sessions,
            choice.model,
            interrupted,
            Arc::clone(&feeds),
            flags,
        )?;
        let app = Arc::new(app);
        let context = Arc::clone(&app) as Arc<dyn ServerContext>;
        let task_runner = Arc::new(TaskRunner::new(Arc::clone(&context)));
        let clock = Arc::new(SystemClock);
        let tasks_server = AgentServer::new(task_runner, Arc::clone(&tasks), clock, settings);
        app.set_server(tasks_server.clone());
        let recovered = tasks_server.recover().await?;
        tasks_server.watch(changes);
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
            .router_beside(auth.require_token(tasks_server.router()))
            .merge(readiness(Arc::clone(&context), tasks_server.clone()));
        let recovery = Recovery::new(tasks_server.clone(), context, tasks, app.users())
            .with_expiry(callers, expiry, Arc::new(SystemClock));
        Ok(Server {
            url,
            recovered,
            handle: ServerHandle {
                api,
                tasks: tasks_server,
            },
            router: auth.guard(router),
            connections,
            listener,
            recovery,
            app,
            database,
            _background: background,
        })
    }

    fn settings(&self) -> ServerSettings {
        let mut settings = ServerSettings::new(
            "lango",
            "A self-hosted team of agents: an orchestrator that delegates to specialists",
            env!("CARGO_PKG_VERSION"),
            &self.url(),
        );
        settings.skills = skills(&self.app.tree);
        settings.input_modes = INPUT_MODES.map(str::to_owned).to_vec();
        settings.access = match self.endpoint.token {
            Some(_) => Access::Bearer,
            None => Access::Open,
        };
        let config = &self.app.loaded.settings.server;
        settings.limits = ServerLimits {
            running: config.max_running_tasks as usize,
            queue: config.queue_limit as usize,
            queue_timeout: config.queue_timeout,
            streams: config.max_streams as usize,
            ..ServerLimits::default()
        };
        settings
    }
}

/// What runs or is locked until the server ends.
struct BackgroundTasks {
    _retention: RetentionTask,
    _reconciling: Option<ReconcileTask>,
    _lock: Option<ServerLock>,
}

/// A server that is ready to answer requests.
pub struct Server {
    /// The address that callers use.
    pub url: String,
    /// What became of the tasks of an earlier run.
    pub recovered: RecoveryReport,
    handle: ServerHandle,
    router: axum::Router,
    connections: ConnectionLimits,
    listener: TcpListener,
    recovery: Recovery,
    app: Arc<ServedApp>,
    database: Arc<Store>,
    _background: BackgroundTasks,
}

/// Stops a server.
#[derive(Clone)]
pub struct ServerHandle {
    api: Api,
    tasks: AgentServer,
}

impl ServerHandle {
    /// Ends live streams, and waits up to `grace` for running tasks.
    pub async fn stop(&self, grace: Duration) {
        self.api.end_streams();
        self.tasks.stop(grace).await;
    }
}

impl Server {
    /// Returns a handle that stops the server.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// Answers requests and resumes interrupted turns until `stop` resolves.
    ///
    /// # Errors
    /// A newer lango has upgraded the database.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), Failure> {
        let served = tokio::select! {
            () = serve(self.listener, self.router, self.connections, stop) => Ok(()),
            () = self.recovery.run() => Ok(()),
            error = wait_for_newer_schema(&self.database) => Err(error),
        };
        if served.is_err() {
            self.handle.tasks.stop(Duration::ZERO).await;
        }
        self.app.close().await;
        // Users can then move or copy the database file alone. If the checkpoint fails, the next start replays the log.
        let _ = self.database.checkpoint_log().await;
        served
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
            return Failure::config(message).next("start the newer lango");
        }
    }
}

/// Raises the limit of open files as far as the system allows: each connection and each active session needs one.
fn raise_open_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = maximum;
    // If this fails, connections beyond the limit wait.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
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
