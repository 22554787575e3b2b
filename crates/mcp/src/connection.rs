//! One connection to a server, from the handshake to its end, and the reason why it ended.

use crate::error::{ConnectError, ConnectFailure};
use crate::handler::Handler;
use crate::http;
use crate::legacy_sse;
use crate::names::one_line;
use crate::oauth::ServerAuth;
use crate::process::{NewFiles, Process};
use crate::program::{ServerCommand, TrustedFiles};
use crate::program_proxy::RunningProxy;
use crate::settings::{ProgramSettings, ServerSettings};
use crate::stdio::StdioTransport;
use crate::task_support::is_task_required;
use crate::tool_definition::ToolDefinition;
use crate::traffic::Traffic;
use lango_core::{Caller, error_chain};
use lango_sandbox::{Launcher, SandboxStrength};
use lango_secrets::Masks;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, JsonObject,
    PaginatedRequestParams, ProtocolVersion, RequestMetaObject,
};
use rmcp::service::{ClientInitializeError, Peer, RoleClient, RunningService, ServiceError};
use rmcp::transport::IntoTransport;
use rmcp::transport::streamable_http_client::AuthRequiredError;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of pages of a server's tool list.
const MAX_PAGES: usize = 64;
/// Maximum number of tools per server.
const MAX_TOOLS: usize = 512;
/// The key in `_meta` under which the server finds the idempotency key of a call.
const CALL_KEY: &str = "lango/idempotencyKey";
/// Maximum size of one tool's definition.
const MAX_DEFINITION_BYTES: usize = 256 << 10;
/// Maximum total size of a server's definitions.
const MAX_DEFINITIONS_BYTES: usize = 4 << 20;
/// How long to wait for the exit status of a program that no longer answers.
const EXIT_WAIT: Duration = Duration::from_secs(2);
/// Maximum number of refused destinations per result.
const MAX_REFUSALS: usize = 20;
/// How long closing the session may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection after a successful handshake.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    /// `None` once the connection is closed.
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    local: LocalEnd,
    pub(crate) info: ServerInfo,
}

/// A server's description of itself.
#[derive(Debug, Clone)]
pub(crate) struct ServerInfo {
    pub(crate) protocol: String,
    /// The name with the version.
    pub(crate) name: String,
    /// The title, or the name, without the version.
    pub(crate) title: String,
}

/// The tools that a server lists.
#[derive(Debug, Default)]
pub(crate) struct ToolListing {
    pub(crate) tools: BTreeMap<String, ToolDefinition>,
    /// The tools that lango ignores, each with the reason, as notes for the user.
    pub(crate) left_out: Vec<String>,
}

/// The reason why a call has no result.
#[derive(Debug)]
pub(crate) enum CallFault {
    /// The server returned an error.
    Refused(ErrorData),
    /// The server's answer is not a tool result. The call may have run.
    Malformed(String),
    /// The server did not authorise the call, so it did not run. Contains advice for the user.
    Unauthorised(String),
    /// The connection broke. The call may have run.
    Broken,
}

/// How lango reaches a server.
pub(crate) enum Transport {
    Program(Box<ProgramSettings>),
    Http(Arc<ServerAuth>),
}

/// Everything that is needed to connect to a server.
pub(crate) struct Connector<'a> {
    pub(crate) settings: &'a ServerSettings,
    pub(crate) transport: &'a Transport,
    pub(crate) launcher: &'a Launcher,
    pub(crate) strength: &'a SandboxStrength,
    pub(crate) start_timeout: Duration,
    pub(crate) trusted: &'a TrustedFiles,
    pub(crate) new_files: &'a Arc<NewFiles>,
    pub(crate) masks: &'a Masks,
}

/// lango's side of a connection.
struct LocalEnd {
    traffic: Arc<Traffic>,
    process: Option<Process>,
    auth: Option<Arc<ServerAuth>>,
}

impl Connector<'_> {
    /// Starts the program, or connects to the address, and performs the handshake.
    pub(crate) async fn open(&self) -> Result<Connection, ConnectFailure> {
        let id = &self.settings.id;
        let traffic = Arc::new(Traffic::default());
        match self.transport {
            Transport::Program(program) => {
                if let SandboxStrength::None { why } = self.strength {
                    return Err(ConnectError::NoSandbox { why: why.clone() }.into());
                }
                let command = ServerCommand {
                    server: id,
                    program,
                };
                let prepared = command.prepare(self.trusted)?;
                let (process, stdin, stdout) =
                    Process::start(self.launcher, command, prepared, self.new_files).await?;
                let stdio =
                    StdioTransport::new(stdout, stdin, Arc::clone(&traffic), self.masks.clone());
                let local = LocalEnd {
                    traffic,
                    process: Some(process),
                    auth: None,
                };
                self.handshake(stdio, local).await
            }
            Transport::Http(auth) => {
                let transport = http::transport(id, Arc::clone(auth), Arc::clone(&traffic))?;
                let local = LocalEnd {
                    traffic,
                    process: None,
                    auth: Some(Arc::clone(auth)),
                };
                match self.handshake(transport, local).await {
                    Err(ConnectFailure {
                        error: ConnectError::Broken { .. } | ConnectError::Silent { .. },
                        ..
                    }) if legacy_sse::is_served(auth).await => {
                        let url = auth.address.url.clone();
                        Err(ConnectError::LegacyTransport { url }.into())
                    }
                    result => result,
                }
            }
        }
    }

    async fn handshake<E, A>(
        &self,
        transport: impl IntoTransport<RoleClient, E, A>,
        local: LocalEnd,
    ) -> Result<Connection, ConnectFailure>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let handler = Handler {
            form_defaults: self.settings.form_defaults,
        };
        let handshake = rmcp::service::serve_client(handler, transport);
        let error = match tokio::time::timeout(self.start_timeout, handshake).await {
            Err(_elapsed) => ConnectError::Silent {
                seconds: self.start_timeout.as_secs().max(1),
                seen: local.traffic.garbage_note(),
            },
            Ok(Err(error)) => local.refused(&error).await,
            Ok(Ok(service)) => match server_info(&service) {
                Err(error) => error,
                Ok(info) => {
                    return Ok(Connection {
                        peer: service.peer().clone(),
                        service: Mutex::new(Some(service)),
                        local,
                        info,
                    });
                }
            },
        };
        if let Some(process) = &local.process {
            process.end().await;
        }
        Err(ConnectFailure {
            error,
            stderr: local.error_output(),
        })
    }
}

impl LocalEnd {
    /// Returns why the connection ended: the reason why lango closed it, or how the program exited.
    async fn end_reason(&self) -> Option<String> {
        match (self.traffic.close_reason(), &self.process) {
            (Some(reason), _) => Some(reason),
            (None, Some(process)) => process.end_within(EXIT_WAIT).await,
            (None, None) => None,
        }
    }

    fn proxy(&self) -> Option<&RunningProxy> {
        self.process.as_ref()?.proxy.as_ref()
    }

    /// Returns the end of the program's error output.
    fn error_output(&self) -> String {
        let process = self.process.as_ref();
        process.map(Process::error_output).unwrap_or_default()
    }

    /// Returns advice for the user if the error is a missing or insufficient authorisation.
    fn advice(&self, error: &(dyn Error + 'static)) -> Option<String> {
        let mut next = Some(error);
        while let Some(error) = next {
            if error.is::<AuthRequiredError>() {
                return self.auth.as_ref().map(|auth| auth.advice());
            }
            next = error.source();
        }
        None
    }

    async fn refused(&self, error: &ClientInitializeError) -> ConnectError {
        let (advice, cause) = {
            // The library does not return this wrapped error as the source.
            let cause: &(dyn Error + 'static) = match error {
                ClientInitializeError::TransportError { error, .. } => error,
                error => error,
            };
            (self.advice(cause), one_line(&error_chain(cause), 300))
        };
        if let Some(advice) = advice {
            return ConnectError::Unauthorised { advice };
        }
        let what = match (error, self.end_reason().await) {
            (_, Some(ended)) => format!("it did not finish the handshake: {ended}"),
            (ClientInitializeError::JsonRpcError(error), None) => {
                format!(
                    "it refused the handshake: {}",
                    one_line(&error.message, 300)
                )
            }
            (_, None) => format!("it did not finish the handshake: {cause}"),
        };
        ConnectError::Broken { what }
    }
}

impl Connection {
    /// Returns whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Returns how often the server announced that its tools changed.
    pub(crate) fn tool_list_changes(&self) -> u64 {
        self.local.traffic.tool_list_changes()
    }

    /// Returns why the connection ended, with the program's error output.
    pub(crate) async fn end(&self) -> ConnectFailure {
        let ended = self.local.end_reason().await;
        let what = ended.unwrap_or_else(|| "the connection was closed".to_owned());
        ConnectFailure {
            error: ConnectError::Broken { what },
            stderr: self.error_output(),
        }
    }

    /// Returns the end of the program's error output.
    pub(crate) fn error_output(&self) -> String {
        self.local.error_output()
    }

    /// Lists all tools of the server.
    pub(crate) async fn tools(
        &self,
        start_timeout: Duration,
    ) -> Result<ToolListing, ConnectFailure> {
        let listing = tokio::time::timeout(start_timeout, self.pages()).await;
        let error = match listing {
            Ok(Ok(listing)) => return Ok(listing),
            Ok(Err(ServiceError::TransportClosed)) => return Err(self.end().await),
            Ok(Err(error)) => match self.local.advice(cause_of(&error)) {
                Some(advice) => ConnectError::Unauthorised { advice },
                None => ConnectError::Broken {
                    what: format!(
                        "it failed to list its tools: {}",
                        one_line(&error_chain(cause_of(&error)), 300)
                    ),
                },
            },
            Err(_elapsed) => ConnectError::Silent {
                seconds: start_timeout.as_secs().max(1),
                seen: " when lango asked for its tools".to_owned(),
            },
        };
        Err(ConnectFailure {
            error,
            stderr: self.error_output(),
        })
    }

    async fn pages(&self) -> Result<ToolListing, ServiceError> {
        let mut listing = ToolListing::default();
        let mut bytes = 0;
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_tools(Some(page)).await?;
            for tool in page.tools {
                let is_task_required = is_task_required(&tool);
                let description = tool.description.map(String::from).unwrap_or_default();
                let schema = serde_json::Value::Object(JsonObject::clone(&tool.input_schema));
                let definition = ToolDefinition::new(description, schema);
                let name = tool.name.into_owned();
                let size = definition.size();
                bytes += size;
                let problem = if size > MAX_DEFINITION_BYTES || bytes > MAX_DEFINITIONS_BYTES {
                    "its description and arguments are too long"
                } else if listing.tools.len() >= MAX_TOOLS {
                    "the server has too many tools"
                } else if listing.tools.contains_key(&name) {
                    "the server lists it twice"
                } else if is_task_required {
                    "it runs only as a task, which lango does not support"
                } else {
                    ""
                };
                match problem {
                    "" => drop(listing.tools.insert(name, definition)),
                    why => listing.leave_out(&name, why),
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(listing);
            }
        }
        listing.left_out.push(format!(
            "it lists its tools on more than {MAX_PAGES} pages; lango ignores the rest"
        ));
        Ok(listing)
    }

    /// Calls a tool. If the future is dropped, the server receives a cancellation.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        caller: &Caller,
    ) -> Result<CallToolResult, CallFault> {
        if let Some(proxy) = self.local.proxy() {
            proxy.start_call(caller);
        }
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut meta = RequestMetaObject::default();
        meta.0.0.insert(CALL_KEY.to_owned(), caller.key().into());
        params.meta = Some(meta);
        match self.peer.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(_) | Err(ServiceError::UnexpectedResponse) => Err(CallFault::Malformed(
                "its answer is not a valid tool result".to_owned(),
            )),
            Err(ServiceError::McpError(error)) => Err(CallFault::Refused(error)),
            Err(ServiceError::TransportSend(error)) => match self.local.advice(&error) {
                Some(advice) => Err(CallFault::Unauthorised(advice)),
                None => {
                    let why = one_line(&error_chain(&error), 300);
                    self.local
                        .traffic
                        .close(format!("it cannot be reached: {why}"));
                    Err(CallFault::Broken)
                }
            },
            Err(_) => Err(CallFault::Broken),
        }
    }

    /// Takes the requests that the program's proxy refused since the last call, as remarks for a result.
    pub(crate) fn network_remarks(&self) -> Vec<String> {
        let refusals = self.local.proxy().map(RunningProxy::refusals);
        let refusals = refusals.into_iter().flatten().take(MAX_REFUSALS);
        refusals
            .map(|refusal| format!("network: {refusal}"))
            .collect()
    }

    /// Closes the connection and stops the program.
    pub(crate) async fn close(&self) {
        let service = {
            let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
            service.take()
        };
        if let Some(mut service) = service {
            // A server that does not close the session in time is abandoned.
            let _ = service.close_with_timeout(CLOSE_TIMEOUT).await;
        }
        if let Some(process) = &self.local.process {
            process.end().await;
        }
    }
}

impl ToolListing {
    fn leave_out(&mut self, name: &str, why: &str) {
        if self.left_out.len() < 8 {
            self.left_out.push(format!(
                "the tool `{}` is left out: {why}",
                one_line(name, 80)
            ));
        }
    }
}

/// Returns the server's description of itself; fails if lango does not support its protocol version.
fn server_info(service: &RunningService<RoleClient, Handler>) -> Result<ServerInfo, ConnectError> {
    let info = service.peer().peer_info();
    let version = info.as_ref().map(|info| info.protocol_version.clone());
    let version = version.unwrap_or(ProtocolVersion::V_2025_11_25);
    let known = ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25);
    if !known.contains(&version) {
        let version = one_line(version.as_str(), 40);
        return Err(ConnectError::Version { version });
    }
    let server = info.as_ref().and_then(|info| info.server_info.as_ref());
    let name = server.map(|server| one_line(&format!("{} {}", server.name, server.version), 100));
    let title = server.map(|server| one_line(server.title.as_ref().unwrap_or(&server.name), 100));
    Ok(ServerInfo {
        protocol: version.as_str().to_owned(),
        name: name.unwrap_or_default(),
        title: title.unwrap_or_default(),
    })
}

/// Returns the inner error of a transport error, which the library does not expose through `source`.
fn cause_of(error: &ServiceError) -> &(dyn Error + 'static) {
    match error {
        ServiceError::TransportSend(error) => error,
        error => error,
    }
}
