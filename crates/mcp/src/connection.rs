//! One connection to a server: from the handshake to its end, and why it ended.

use crate::error::{ConnectError, Failure};
use crate::form::Form;
use crate::frames::Frames;
use crate::handler::Handler;
use crate::http;
use crate::names::line;
use crate::process::{Process, causes};
use crate::settings::{Reach, ServerSettings};
use crate::traffic::Traffic;
use lango_sandbox::{Launcher, Strength};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, JsonObject,
    PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, ServiceError};
use rmcp::transport::IntoTransport;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How many pages of tools are asked for, and how many tools of a server are taken.
const MOST_PAGES: usize = 64;
const MOST_TOOLS: usize = 512;
/// How much a server may say of one tool, and of all.
const MOST_FORM_BYTES: usize = 256 << 10;
const MOST_FORMS_BYTES: usize = 4 << 20;
/// How long it is waited to hear how a program ended that no longer answers.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// A server that answers.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    traffic: Arc<Traffic>,
    process: Option<Process>,
    pub(crate) about: About,
}

/// What a server says of itself.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) protocol: String,
    pub(crate) name: String,
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
    /// The connection broke. Whether the call was done, nobody knows.
    Broken,
}

impl Connection {
    /// Starts the server, or reaches out to it, and shakes hands.
    pub(crate) async fn open(
        settings: &ServerSettings,
        launcher: &Launcher,
        strength: &Strength,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let traffic = Arc::new(Traffic::default());
        match &settings.reach {
            Reach::Program(program) => {
                if let Strength::None { why } = strength {
                    return Err(ConnectError::NoSandbox { why: why.clone() }.into());
                }
                let (process, stdin, stdout) = Process::start(launcher, &settings.id, program)?;
                let frames = Frames::new(stdout, stdin, Arc::clone(&traffic));
                Self::greet(settings, frames, traffic, Some(process), patience).await
            }
            Reach::Address(address) => {
                let transport = http::transport(&settings.id, address, Arc::clone(&traffic))?;
                Self::greet(settings, transport, traffic, None, patience).await
            }
        }
    }

    async fn greet<E, A>(
        settings: &ServerSettings,
        transport: impl IntoTransport<RoleClient, E, A>,
        traffic: Arc<Traffic>,
        process: Option<Process>,
        patience: Duration,
    ) -> Result<Self, Failure>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let handler = Handler {
            form_defaults: settings.form_defaults,
        };
        let greeting = rmcp::service::serve_client(handler, transport);
        let error = match tokio::time::timeout(patience, greeting).await {
            Err(_elapsed) => ConnectError::Silent {
                seconds: patience.as_secs().max(1),
                seen: traffic.seen(),
            },
            Ok(Err(error)) => {
                let ended = end_of(&traffic, process.as_ref()).await;
                refused(&settings.id, &error, ended)
            }
            Ok(Ok(service)) => match about(&service) {
                Err(error) => error,
                Ok(about) => {
                    return Ok(Self {
                        service,
                        traffic,
                        process,
                        about,
                    });
                }
            },
        };
        let stderr = match &process {
            None => String::new(),
            Some(process) => {
                process.end().await;
                process.last_words()
            }
        };
        Err(Failure { error, stderr })
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.service.peer().is_transport_closed()
    }

    /// How often the server said that its tools are others now.
    pub(crate) fn new_tools(&self) -> u64 {
        self.traffic.new_tools()
    }

    /// Why it is over, and the last words of the program.
    pub(crate) async fn end(&self) -> Failure {
        let ended = end_of(&self.traffic, self.process.as_ref()).await;
        let what = ended.unwrap_or_else(|| "the connection was closed".to_owned());
        Failure {
            error: ConnectError::Broken { what },
            stderr: self.last_words(),
        }
    }

    /// What the program complained about last.
    pub(crate) fn last_words(&self) -> String {
        let process = self.process.as_ref();
        process.map(Process::last_words).unwrap_or_default()
    }

    /// All that the server offers.
    pub(crate) async fn tools(&self, patience: Duration) -> Result<Listing, Failure> {
        let listing = tokio::time::timeout(patience, self.pages()).await;
        let error = match listing {
            Ok(Ok(listing)) => return Ok(listing),
            Ok(Err(ServiceError::TransportClosed)) => return Err(self.end().await),
            Ok(Err(error)) => ConnectError::Broken {
                what: format!("it does not list its tools: {}", line(&causes(&error), 300)),
            },
            Err(_elapsed) => ConnectError::Silent {
                seconds: patience.as_secs().max(1),
                seen: ", when it was asked for its tools".to_owned(),
            },
        };
        Err(Failure {
            error,
            stderr: self.last_words(),
        })
    }

    async fn pages(&self) -> Result<Listing, ServiceError> {
        let mut listing = Listing::default();
        let mut bytes = 0;
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.service.peer().list_tools(Some(page)).await?;
            for tool in page.tools {
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
                break;
            }
        }
        Ok(listing)
    }

    /// Calls a tool. Dropping this tells the server that nobody waits any more.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<CallToolResult, CallFault> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match self.service.peer().call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(_) | Err(ServiceError::UnexpectedResponse) => Err(CallFault::Odd(
                "its answer does not have the form of a tool's result".to_owned(),
            )),
            Err(ServiceError::McpError(error)) => Err(CallFault::Refused(error)),
            Err(ServiceError::TransportSend(error)) => {
                self.traffic.cut(format!(
                    "it cannot be reached: {}",
                    line(&causes(&error), 300)
                ));
                Err(CallFault::Broken)
            }
            Err(_) => Err(CallFault::Broken),
        }
    }

    /// Ends it, and what was started for it.
    pub(crate) async fn close(&self) {
        self.service.cancellation_token().cancel();
        if let Some(process) = &self.process {
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
    Ok(About {
        protocol: version.as_str().to_owned(),
        name: name.unwrap_or_default(),
    })
}

/// Why a connection ended: what was cut off here comes first, then what became of the program.
async fn end_of(traffic: &Traffic, process: Option<&Process>) -> Option<String> {
    match (traffic.reason(), process) {
        (Some(reason), _) => Some(reason),
        (None, Some(process)) => process.end_within(LAST_MOMENT).await,
        (None, None) => None,
    }
}

fn refused(server: &str, error: &ClientInitializeError, ended: Option<String>) -> ConnectError {
    if error.is_authorization_required() {
        let server = server.to_owned();
        return ConnectError::Unauthorised { server };
    }
    let what = match (error, ended) {
        (_, Some(ended)) => format!("it did not finish the handshake: {ended}"),
        (ClientInitializeError::JsonRpcError(error), None) => {
            format!("it refused the handshake: {}", line(&error.message, 300))
        }
        (error, None) => format!(
            "it did not finish the handshake: {}",
            line(&causes(error), 300)
        ),
    };
    ConnectError::Broken { what }
}
