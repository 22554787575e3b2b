//! One connection to a server: from the handshake to its end, and why it ended.

use crate::error::{ConnectError, Failure};
use crate::form::Form;
use crate::frames::Frames;
use crate::handler::Handler;
use crate::http;
use crate::legacy_sse;
use crate::names::line;
use crate::oauth::Bearer;
use crate::process::{NewFiles, Process};
use crate::program::{ServerCommand, TrustedFiles};
use crate::program_proxy::RunningProxy;
use crate::settings::{Program, ServerSettings};
use crate::task_support::is_task_required;
use crate::traffic::Traffic;
use lango_core::{Caller, error_chain};
use lango_sandbox::{Launcher, Strength};
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

/// How many pages of tools are asked for, and how many tools of a server are taken.
const MOST_PAGES: usize = 64;
const MOST_TOOLS: usize = 512;
/// Where a server finds the call's own key in `_meta`: what comes under one key twice is one call.
const CALL_KEY: &str = "lango/idempotencyKey";
/// How much a server may say of one tool, and of all.
const MOST_FORM_BYTES: usize = 256 << 10;
const MOST_FORMS_BYTES: usize = 4 << 20;
/// How long it is waited to hear how a program ended that no longer answers.
const LAST_MOMENT: Duration = Duration::from_secs(2);
/// Maximum number of refused destinations in a result.
const MOST_REFUSALS: usize = 20;
/// How long taking leave of a server may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// A server that answers.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    /// There until it is closed.
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    ends: Ends,
    pub(crate) about: About,
}

/// What a server says of itself.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) protocol: String,
    pub(crate) name: String,
    /// The same without its version, as people read it.
    pub(crate) title: String,
}

/// What a server offers.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: BTreeMap<String, Form>,
    /// What was left out, and why.
    pub(crate) left_out: Vec<String>,
}

/// Why a call gave no result.
#[derive(Debug)]
pub(crate) enum CallFault {
    /// The server said so itself.
    Refused(ErrorData),
    /// The answer is none.
    Odd(String),
    /// The server did not let the call in, so it was not done.
    Unauthorised(String),
    /// The connection broke. Whether the call was done, nobody knows.
    Broken,
}

/// How a server is reached, with what is needed for it.
pub(crate) enum Way {
    Program(Box<Program>),
    Address(Arc<Bearer>),
}

/// Where a connection is to be made.
pub(crate) struct Opening<'a> {
    pub(crate) settings: &'a ServerSettings,
    pub(crate) way: &'a Way,
    pub(crate) launcher: &'a Launcher,
    pub(crate) strength: &'a Strength,
    pub(crate) patience: Duration,
    pub(crate) trusted: &'a TrustedFiles,
    pub(crate) new_files: &'a Arc<NewFiles>,
    pub(crate) masks: &'a Masks,
}

/// What is on this side of a connection.
struct Ends {
    traffic: Arc<Traffic>,
    process: Option<Process>,
    bearer: Option<Arc<Bearer>>,
}

impl Opening<'_> {
    /// Starts the server, or reaches out to it, and shakes hands.
    pub(crate) async fn open(&self) -> Result<Connection, Failure> {
        let id = &self.settings.id;
        let traffic = Arc::new(Traffic::default());
        match self.way {
            Way::Program(program) => {
                if let Strength::None { why } = self.strength {
                    return Err(ConnectError::NoSandbox { why: why.clone() }.into());
                }
                let command = ServerCommand {
                    server: id,
                    program,
                };
                let prepared = command.prepare(self.trusted)?;
                let (process, stdin, stdout) =
                    Process::start(self.launcher, command, prepared, self.new_files).await?;
                let frames = Frames::new(stdout, stdin, Arc::clone(&traffic), self.masks.clone());
                let ends = Ends {
                    traffic,
                    process: Some(process),
                    bearer: None,
                };
                self.greet(frames, ends).await
            }
            Way::Address(bearer) => {
                let transport = http::transport(id, Arc::clone(bearer), Arc::clone(&traffic))?;
                let ends = Ends {
                    traffic,
                    process: None,
                    bearer: Some(Arc::clone(bearer)),
                };
                match self.greet(transport, ends).await {
                    Err(Failure {
                        error: ConnectError::Broken { .. } | ConnectError::Silent { .. },
                        ..
                    }) if legacy_sse::is_served(bearer).await => {
                        let url = bearer.address.url.clone();
                        Err(ConnectError::LegacyTransport { url }.into())
                    }
                    greeted => greeted,
                }
            }
        }
    }

    async fn greet<E, A>(
        &self,
        transport: impl IntoTransport<RoleClient, E, A>,
        ends: Ends,
    ) -> Result<Connection, Failure>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let handler = Handler {
            form_defaults: self.settings.form_defaults,
        };
        let greeting = rmcp::service::serve_client(handler, transport);
        let error = match tokio::time::timeout(self.patience, greeting).await {
            Err(_elapsed) => ConnectError::Silent {
                seconds: self.patience.as_secs().max(1),
                seen: ends.traffic.seen(),
            },
            Ok(Err(error)) => ends.refused(&error).await,
            Ok(Ok(service)) => match about(&service) {
                Err(error) => error,
                Ok(about) => {
                    return Ok(Connection {
                        peer: service.peer().clone(),
                        service: Mutex::new(Some(service)),
                        ends,
                        about,
                    });
                }
            },
        };
        if let Some(process) = &ends.process {
            process.end().await;
        }
        Err(Failure {
            error,
            stderr: ends.error_output(),
        })
    }
}

impl Ends {
    /// Why a connection ended: what was cut off here comes first, then what became of the program.
    async fn fate(&self) -> Option<String> {
        match (self.traffic.reason(), &self.process) {
            (Some(reason), _) => Some(reason),
            (None, Some(process)) => process.end_within(LAST_MOMENT).await,
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

    /// What a person can do, if the server did not let lango in.
    fn advice(&self, error: &(dyn Error + 'static)) -> Option<String> {
        let mut next = Some(error);
        while let Some(error) = next {
            if error.is::<AuthRequiredError>() {
                return self.bearer.as_ref().map(|bearer| bearer.advice());
            }
            next = error.source();
        }
        None
    }

    async fn refused(&self, error: &ClientInitializeError) -> ConnectError {
        let (advice, cause) = {
            // The library does not name what it wraps here as its cause.
            let cause: &(dyn Error + 'static) = match error {
                ClientInitializeError::TransportError { error, .. } => error,
                error => error,
            };
            (self.advice(cause), line(&error_chain(cause), 300))
        };
        if let Some(advice) = advice {
            return ConnectError::Unauthorised { advice };
        }
        let what = match (error, self.fate().await) {
            (_, Some(ended)) => format!("it did not finish the handshake: {ended}"),
            (ClientInitializeError::JsonRpcError(error), None) => {
                format!("it refused the handshake: {}", line(&error.message, 300))
            }
            (_, None) => format!("it did not finish the handshake: {cause}"),
        };
        ConnectError::Broken { what }
    }
}

impl Connection {
    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// How often the server said that its tools are others now.
    pub(crate) fn new_tools(&self) -> u64 {
        self.ends.traffic.new_tools()
    }

    /// Why it is over, and the last words of the program.
    pub(crate) async fn end(&self) -> Failure {
        let ended = self.ends.fate().await;
        let what = ended.unwrap_or_else(|| "the connection was closed".to_owned());
        Failure {
            error: ConnectError::Broken { what },
            stderr: self.error_output(),
        }
    }

    /// Returns the end of the program's error output.
    pub(crate) fn error_output(&self) -> String {
        self.ends.error_output()
    }

    /// All that the server offers.
    pub(crate) async fn tools(&self, patience: Duration) -> Result<Listing, Failure> {
        let listing = tokio::time::timeout(patience, self.pages()).await;
        let error = match listing {
            Ok(Ok(listing)) => return Ok(listing),
            Ok(Err(ServiceError::TransportClosed)) => return Err(self.end().await),
            Ok(Err(error)) => match self.ends.advice(cause_of(&error)) {
                Some(advice) => ConnectError::Unauthorised { advice },
                None => ConnectError::Broken {
                    what: format!(
                        "it does not list its tools: {}",
                        line(&error_chain(cause_of(&error)), 300)
                    ),
                },
            },
            Err(_elapsed) => ConnectError::Silent {
                seconds: patience.as_secs().max(1),
                seen: ", when it was asked for its tools".to_owned(),
            },
        };
        Err(Failure {
            error,
            stderr: self.error_output(),
        })
    }

    async fn pages(&self) -> Result<Listing, ServiceError> {
        let mut listing = Listing::default();
        let mut bytes = 0;
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_tools(Some(page)).await?;
            for tool in page.tools {
                let is_task_required = is_task_required(&tool);
                let description = tool.description.map(String::from).unwrap_or_default();
                let schema = serde_json::Value::Object(JsonObject::clone(&tool.input_schema));
                let form = Form::new(description, schema);
                let name = tool.name.into_owned();
                let size = form.size();
                bytes += size;
                let problem = if size > MOST_FORM_BYTES || bytes > MOST_FORMS_BYTES {
                    "its description and arguments are too long"
                } else if listing.tools.len() >= MOST_TOOLS {
                    "the server has too many tools"
                } else if listing.tools.contains_key(&name) {
                    "the server lists it twice"
                } else if is_task_required {
                    "it runs only as a task, which lango does not support"
                } else {
                    ""
                };
                match problem {
                    "" => drop(listing.tools.insert(name, form)),
                    why => listing.leave_out(&name, why),
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(listing);
            }
        }
        listing.left_out.push(format!(
            "it lists its tools on more than {MOST_PAGES} pages; what comes after is left out"
        ));
        Ok(listing)
    }

    /// Calls a tool. Dropping this tells the server that nobody waits any more.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        caller: &Caller,
    ) -> Result<CallToolResult, CallFault> {
        if let Some(proxy) = self.ends.proxy() {
            proxy.start_call(caller);
        }
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut meta = RequestMetaObject::default();
        meta.0.0.insert(CALL_KEY.to_owned(), caller.key().into());
        params.meta = Some(meta);
        match self.peer.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(_) | Err(ServiceError::UnexpectedResponse) => Err(CallFault::Odd(
                "its answer does not have the form of a tool's result".to_owned(),
            )),
            Err(ServiceError::McpError(error)) => Err(CallFault::Refused(error)),
            Err(ServiceError::TransportSend(error)) => match self.ends.advice(&error) {
                Some(advice) => Err(CallFault::Unauthorised(advice)),
                None => {
                    let why = line(&error_chain(&error), 300);
                    self.ends
                        .traffic
                        .cut(format!("it cannot be reached: {why}"));
                    Err(CallFault::Broken)
                }
            },
            Err(_) => Err(CallFault::Broken),
        }
    }

    /// Takes what the program's proxy refused since the last call, as remarks for a result.
    pub(crate) fn network_remarks(&self) -> Vec<String> {
        let refusals = self.ends.proxy().map(RunningProxy::refusals);
        let refusals = refusals.into_iter().flatten().take(MOST_REFUSALS);
        refusals
            .map(|refusal| format!("network: {refusal}"))
            .collect()
    }

    /// Ends it, and what was started for it.
    pub(crate) async fn close(&self) {
        let service = {
            let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
            service.take()
        };
        if let Some(mut service) = service {
            // One that does not take leave in time is left.
            let _ = service.close_with_timeout(FAREWELL).await;
        }
        if let Some(process) = &self.ends.process {
            process.end().await;
        }
    }
}

impl Listing {
    fn leave_out(&mut self, name: &str, why: &str) {
        if self.left_out.len() < 8 {
            self.left_out
                .push(format!("the tool `{}` is left out: {why}", line(name, 80)));
        }
    }
}

/// What the server said of itself, if lango understands its version.
fn about(service: &RunningService<RoleClient, Handler>) -> Result<About, ConnectError> {
    let info = service.peer().peer_info();
    let version = info.as_ref().map(|info| info.protocol_version.clone());
    let version = version.unwrap_or(ProtocolVersion::V_2025_11_25);
    let known = ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25);
    if !known.contains(&version) {
        let version = line(version.as_str(), 40);
        return Err(ConnectError::Version { version });
    }
    let server = info.as_ref().and_then(|info| info.server_info.as_ref());
    let name = server.map(|server| line(&format!("{} {}", server.name, server.version), 100));
    let title = server.map(|server| line(server.title.as_ref().unwrap_or(&server.name), 100));
    Ok(About {
        protocol: version.as_str().to_owned(),
        name: name.unwrap_or_default(),
        title: title.unwrap_or_default(),
    })
}

/// What lies below an error of the library, which does not name it as its cause.
fn cause_of(error: &ServiceError) -> &(dyn Error + 'static) {
    match error {
        ServiceError::TransportSend(error) => error,
        error => error,
    }
}
