//! One request and its answer, over either binding. What is asked is the same in both; here is where they differ.

use super::card::{Binding, Interface};
use super::http::{self, BodyFault, Token, deepest};
use super::refusal::{self, Kind, Refusal};
use super::settings::Patience;
use super::stream::Events;
use super::words::one_line;
use a2a::{SVC_PARAM_VERSION, SendMessageRequest, methods};
use lango_secrets::Masks;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde_json::{Value, json};
use std::time::Duration;

/// The longest body of an answer that is not streamed: the largest file fits in it as base64.
const BODY_BYTES: usize = 16 * 1024 * 1024;

/// The longest error that is read.
const ERROR_BYTES: usize = 64 * 1024;

const A2A_JSON: &str = "application/a2a+json";
const PLAIN_JSON: &str = "application/json";

/// What is asked of a server.
#[derive(Clone, Copy)]
pub(crate) enum Ask<'a> {
    Send(&'a SendMessageRequest),
    SendStreaming(&'a SendMessageRequest),
    Look { task: &'a str },
    Subscribe { task: &'a str },
    Cancel { task: &'a str },
}

/// What came back.
pub(crate) enum Reply {
    Whole(Value),
    Stream(Box<Events>),
}

/// The way to one interface.
pub(crate) struct Wire {
    client: Client,
    interface: Interface,
    token: Token,
    pub masks: Masks,
    pub patience: Patience,
}

/// What a way is made of.
pub(crate) struct WireParts {
    pub client: Client,
    pub interface: Interface,
    pub token: Token,
    pub masks: Masks,
    pub patience: Patience,
}

impl Wire {
    pub fn new(parts: WireParts) -> Self {
        Self {
            client: parts.client,
            interface: parts.interface,
            token: parts.token,
            masks: parts.masks,
            patience: parts.patience,
        }
    }

    /// Asks, in the forms that servers differ in: each is tried only after a plain refusal of the one before.
    pub async fn ask(&self, ask: Ask<'_>, patience: Duration) -> Result<Reply, Refusal> {
        let first = self.ask_as(ask, Form::Usual, patience).await;
        let form = match (&first, self.interface.binding, ask) {
            (Err(refusal), Binding::HttpJson, Ask::Subscribe { .. })
                if matches!(refusal.kind, Kind::NoSuchMethod | Kind::NotFound) =>
            {
                Form::SubscribeByPost
            }
            (Err(refusal), Binding::HttpJson, _) if refusal.kind == Kind::MediaType => {
                Form::PlainJson
            }
            _ => return first,
        };
        self.ask_as(ask, form, patience).await
    }

    async fn ask_as(&self, ask: Ask<'_>, form: Form, patience: Duration) -> Result<Reply, Refusal> {
        let request = match self.interface.binding {
            Binding::JsonRpc => self.rpc(ask),
            Binding::HttpJson => self.rest(ask, form),
        };
        let headers = self.token.headers_for(&self.interface.url).await;
        let headers = headers.map_err(|error| Refusal::new(Kind::NotSent, error.to_string()))?;
        let request = request.header(SVC_PARAM_VERSION, a2a::VERSION);
        let request = request.headers(headers);
        let response = match tokio::time::timeout(patience, request.send()).await {
            Err(_elapsed) => {
                return Err(Refusal::lost(format!(
                    "it did not answer within {} s",
                    patience.as_secs()
                )));
            }
            Ok(Err(error)) if error.is_connect() || error.is_builder() => {
                return Err(Refusal::new(
                    Kind::NotSent,
                    format!("it cannot be reached: {}", deepest(&error)),
                ));
            }
            Ok(Err(error)) => {
                return Err(Refusal::lost(format!(
                    "the connection broke before it answered: {}",
                    deepest(&error)
                )));
            }
            Ok(Ok(response)) => response,
        };
        let read = self.read(response);
        let elapsed = || Refusal::lost("its answer stopped in the middle");
        tokio::time::timeout(patience, read)
            .await
            .unwrap_or_else(|_| Err(elapsed()))
    }

    async fn read(&self, mut response: Response) -> Result<Reply, Refusal> {
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let kind = response.headers().get(CONTENT_TYPE);
        if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            if !http::is_plain(&response) {
                return Err(Refusal::lost("its stream is compressed"));
            }
            let events = Events::new(response, self.interface.binding, self.masks.clone());
            return Ok(Reply::Stream(Box::new(events)));
        }
        let bytes = http::body(&mut response, BODY_BYTES).await;
        let bytes = bytes.map_err(|fault| match fault {
            BodyFault::TooLong => {
                Refusal::lost(format!("its answer is longer than {BODY_BYTES} bytes"))
            }
            BodyFault::CutOff(detail) => {
                Refusal::lost(format!("the connection broke in its answer: {detail}"))
            }
        })?;
        let mut value =
            serde_json::from_slice(&bytes).map_err(|_| Refusal::lost("its answer is not JSON"))?;
        self.masks.mask_json(&mut value);
        unwrapped(self.interface.binding, value).map(Reply::Whole)
    }

    async fn refusal(&self, mut response: Response) -> Refusal {
        let status = response.status().as_u16();
        let wait = retry_after(response.headers());
        if let Some(location) = response.headers().get(LOCATION)
            && response.status().is_redirection()
        {
            let location = self.masks.mask_bytes(location.as_bytes());
            let location = one_line(&String::from_utf8_lossy(&location), 200);
            let detail = format!("it answered {status}: it has moved to `{location}`");
            return Refusal::new(Kind::Moved, detail);
        }
        let body = http::body(&mut response, ERROR_BYTES).await;
        let body = body.unwrap_or_default();
        let mut refusal = refusal::of_status(status, wait, &self.masks.mask_bytes(&body));
        match refusal.kind {
            Kind::Unauthorised => {
                let next_step = self.token.next_step(&self.interface.url);
                refusal.detail = format!("{}; {next_step}", refusal.detail);
            }
            Kind::Busy { wait: Some(wait) } => {
                let seconds = wait.as_secs();
                refusal.detail = format!("{}; it asks to wait {seconds} s", refusal.detail);
            }
            _ => {}
        }
        refusal
    }

    fn rpc(&self, ask: Ask<'_>) -> RequestBuilder {
        let (method, params) = match ask {
            Ask::Send(request) => (methods::SEND_MESSAGE, json!(request)),
            Ask::SendStreaming(request) => (methods::SEND_STREAMING_MESSAGE, json!(request)),
            Ask::Look { task } => (methods::GET_TASK, self.named(task)),
            Ask::Subscribe { task } => (methods::SUBSCRIBE_TO_TASK, self.named(task)),
            Ask::Cancel { task } => (methods::CANCEL_TASK, self.named(task)),
        };
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.client
            .post(self.interface.url.clone())
            .header(CONTENT_TYPE, PLAIN_JSON)
            .header(ACCEPT, accepted(ask, PLAIN_JSON))
            .body(body.to_string())
    }

    fn rest(&self, ask: Ask<'_>, form: Form) -> RequestBuilder {
        let (method, path, body) = match ask {
            Ask::Send(request) => (
                Method::POST,
                vec!["message:send".to_owned()],
                json!(request),
            ),
            Ask::SendStreaming(request) => (
                Method::POST,
                vec!["message:stream".to_owned()],
                json!(request),
            ),
            Ask::Look { task } => (Method::GET, of_task(task, ""), Value::Null),
            Ask::Subscribe { task } if form == Form::SubscribeByPost => {
                (Method::POST, of_task(task, ":subscribe"), self.named(task))
            }
            Ask::Subscribe { task } => (Method::GET, of_task(task, ":subscribe"), Value::Null),
            Ask::Cancel { task } => (Method::POST, of_task(task, ":cancel"), self.named(task)),
        };
        let request = self.client.request(method, self.place(&path)).header(
            ACCEPT,
            accepted(ask, "application/a2a+json, application/json"),
        );
        if body.is_null() {
            return request;
        }
        let kind = if form == Form::PlainJson {
            PLAIN_JSON
        } else {
            A2A_JSON
        };
        request.header(CONTENT_TYPE, kind).body(body.to_string())
    }

    /// The parameters that name a task.
    fn named(&self, task: &str) -> Value {
        match &self.interface.tenant {
            Some(tenant) => json!({ "id": task, "tenant": tenant }),
            None => json!({ "id": task }),
        }
    }

    /// A place below the interface; a tenant stands in front of it.
    fn place(&self, path: &[String]) -> Url {
        let mut url = self.interface.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            segments.extend(self.interface.tenant.iter());
            segments.extend(path);
        }
        url
    }
}

/// The form of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Usual,
    /// The specification has two opinions on the method of this one.
    SubscribeByPost,
    /// Servers from before the content type had a name of its own.
    PlainJson,
}

fn of_task(task: &str, verb: &str) -> Vec<String> {
    vec!["tasks".to_owned(), format!("{task}{verb}")]
}

fn accepted(ask: Ask<'_>, whole: &str) -> String {
    match ask {
        Ask::SendStreaming(_) | Ask::Subscribe { .. } => format!("text/event-stream, {whole}"),
        Ask::Send(_) | Ask::Look { .. } | Ask::Cancel { .. } => whole.to_owned(),
    }
}

/// What is inside the envelope of a binding.
pub(crate) fn unwrapped(binding: Binding, mut value: Value) -> Result<Value, Refusal> {
    if value["error"].is_object() {
        return Err(refusal::of_error(&value["error"]));
    }
    match binding {
        Binding::HttpJson => Ok(value),
        Binding::JsonRpc => match value.get_mut("result").map(Value::take) {
            Some(result) if !result.is_null() => Ok(result),
            _ => Err(Refusal::lost(
                "its answer has neither a result nor an error",
            )),
        },
    }
}

/// How long it wants us to wait, in whole seconds; a date is not read.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    let seconds: u32 = text.trim().parse().ok()?;
    Some(Duration::from_secs(u64::from(seconds)))
}
