//! Sends one request and reads its answer, over either binding. The operations are the same in both; this module
//! handles the differences.

use super::card::{Binding, Interface};
use super::http::{self, Credentials, root_cause};
use super::refusal::{self, Refusal, RefusalKind};
use super::sanitize::one_line;
use super::settings::RemoteTimeouts;
use super::stream::EventStream;
use a2a::{SVC_PARAM_VERSION, SendMessageRequest, methods};
use lango_net::{BodyError, is_plain_body, retry_after};
use lango_secrets::Masks;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// The maximum size of an answer that is not streamed, in bytes. The largest file fits in it as base64.
const BODY_BYTES: usize = 16 * 1024 * 1024;

/// The maximum size of an error response, in bytes.
const ERROR_BYTES: usize = 64 * 1024;

const A2A_JSON: &str = "application/a2a+json";
const PLAIN_JSON: &str = "application/json";

/// An operation of the protocol, with its arguments.
#[derive(Clone, Copy)]
pub(crate) enum Operation<'a> {
    Send(&'a SendMessageRequest),
    SendStreaming(&'a SendMessageRequest),
    Get { task: &'a str },
    Subscribe { task: &'a str },
    Cancel { task: &'a str },
}

/// The answer of a server.
pub(crate) enum Reply {
    Whole(Value),
    Stream(Box<EventStream>),
}

/// The connection to one interface of an agent.
pub(crate) struct Wire {
    client: Client,
    interface: Interface,
    credentials: Credentials,
    pub masks: Masks,
    pub timeouts: RemoteTimeouts,
}

pub(crate) struct WireParts {
    pub client: Client,
    pub interface: Interface,
    pub credentials: Credentials,
    pub masks: Masks,
    pub timeouts: RemoteTimeouts,
}

impl Wire {
    pub(crate) fn new(parts: WireParts) -> Self {
        Self {
            client: parts.client,
            interface: parts.interface,
            credentials: parts.credentials,
            masks: parts.masks,
            timeouts: parts.timeouts,
        }
    }

    /// Sends a request. If the server clearly refuses its form, sends it again in the form that other servers expect.
    pub(crate) async fn request(
        &self,
        operation: Operation<'_>,
        timeout: Duration,
    ) -> Result<Reply, Refusal> {
        let first = self
            .request_as(operation, RequestForm::Default, timeout)
            .await;
        let form = match (&first, self.interface.binding, operation) {
            (Err(refusal), Binding::HttpJson, Operation::Subscribe { .. })
                if matches!(
                    refusal.kind,
                    RefusalKind::NoSuchMethod | RefusalKind::NotFound
                ) =>
            {
                RequestForm::SubscribeByPost
            }
            (Err(refusal), Binding::HttpJson, _) if refusal.kind == RefusalKind::MediaType => {
                RequestForm::PlainJson
            }
            _ => return first,
        };
        self.request_as(operation, form, timeout).await
    }

    async fn request_as(
        &self,
        operation: Operation<'_>,
        form: RequestForm,
        timeout: Duration,
    ) -> Result<Reply, Refusal> {
        let request = match self.interface.binding {
            Binding::JsonRpc => self.rpc(operation),
            Binding::HttpJson => self.rest(operation, form),
        };
        let headers = self.credentials.headers_for(&self.interface.url).await;
        let headers =
            headers.map_err(|error| Refusal::new(RefusalKind::NotSent, error.to_string()))?;
        let request = request.header(SVC_PARAM_VERSION, a2a::VERSION);
        let request = request.headers(headers);
        let response = match tokio::time::timeout(timeout, request.send()).await {
            Err(_elapsed) => {
                return Err(Refusal::lost(format!(
                    "it did not answer within {} s",
                    timeout.as_secs()
                )));
            }
            Ok(Err(error)) if error.is_connect() || error.is_builder() => {
                return Err(Refusal::new(
                    RefusalKind::NotSent,
                    format!("it cannot be reached: {}", root_cause(&error)),
                ));
            }
            Ok(Err(error)) => {
                return Err(Refusal::lost(format!(
                    "the connection broke before it answered: {}",
                    root_cause(&error)
                )));
            }
            Ok(Ok(response)) => response,
        };
        let read = self.read(response);
        let elapsed = || Refusal::lost("its answer stopped in the middle");
        tokio::time::timeout(timeout, read)
            .await
            .unwrap_or_else(|_| Err(elapsed()))
    }

    async fn read(&self, mut response: Response) -> Result<Reply, Refusal> {
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let kind = response.headers().get(CONTENT_TYPE);
        if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            if !is_plain_body(&response) {
                return Err(Refusal::lost("its stream is compressed"));
            }
            let events = EventStream::new(response, self.interface.binding, self.masks.clone());
            return Ok(Reply::Stream(Box::new(events)));
        }
        let bytes = http::body(&mut response, BODY_BYTES).await;
        let bytes = bytes.map_err(|error| match error {
            BodyError::TooLong { limit } => {
                Refusal::lost(format!("its answer is longer than {limit} bytes"))
            }
            error => Refusal::lost(format!("the connection broke in its answer: {error}")),
        })?;
        let mut value =
            serde_json::from_slice(&bytes).map_err(|_| Refusal::lost("its answer is not JSON"))?;
        self.masks.mask_json(&mut value);
        unwrap_envelope(self.interface.binding, value).map(Reply::Whole)
    }

    async fn refusal(&self, mut response: Response) -> Refusal {
        let status = response.status().as_u16();
        // Only the standard header says that the server did not accept the request.
        let headers = response.headers();
        let wait = headers
            .contains_key(RETRY_AFTER)
            .then(|| retry_after(headers, SystemTime::now()))
            .flatten();
        if let Some(location) = response.headers().get(LOCATION)
            && response.status().is_redirection()
        {
            let location = self.masks.mask_bytes(location.as_bytes());
            let location = one_line(&String::from_utf8_lossy(&location), 200);
            let detail = format!("it answered {status}: it has moved to `{location}`");
            return Refusal::new(RefusalKind::Moved, detail);
        }
        let body = http::body(&mut response, ERROR_BYTES).await;
        let body = body.unwrap_or_default();
        let mut refusal = refusal::of_status(status, wait, &self.masks.mask_bytes(&body));
        match refusal.kind {
            RefusalKind::Unauthorised => {
                let next_step = self.credentials.next_step(&self.interface.url);
                refusal.detail = format!("{}; {next_step}", refusal.detail);
            }
            RefusalKind::Busy { wait: Some(wait) } => {
                let seconds = wait.as_secs();
                refusal.detail = format!("{}; it asks to wait {seconds} s", refusal.detail);
            }
            _ => {}
        }
        refusal
    }

    fn rpc(&self, operation: Operation<'_>) -> RequestBuilder {
        let (method, params) = match operation {
            Operation::Send(request) => (methods::SEND_MESSAGE, json!(request)),
            Operation::SendStreaming(request) => (methods::SEND_STREAMING_MESSAGE, json!(request)),
            Operation::Get { task } => (methods::GET_TASK, self.task_params(task)),
            Operation::Subscribe { task } => (methods::SUBSCRIBE_TO_TASK, self.task_params(task)),
            Operation::Cancel { task } => (methods::CANCEL_TASK, self.task_params(task)),
        };
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.client
            .post(self.interface.url.clone())
            .header(CONTENT_TYPE, PLAIN_JSON)
            .header(ACCEPT, accepted(operation, PLAIN_JSON))
            .body(body.to_string())
    }

    fn rest(&self, operation: Operation<'_>, form: RequestForm) -> RequestBuilder {
        let (method, path, body) = match operation {
            Operation::Send(request) => (
                Method::POST,
                vec!["message:send".to_owned()],
                json!(request),
            ),
            Operation::SendStreaming(request) => (
                Method::POST,
                vec!["message:stream".to_owned()],
                json!(request),
            ),
            Operation::Get { task } => (Method::GET, task_path(task, ""), Value::Null),
            Operation::Subscribe { task } if form == RequestForm::SubscribeByPost => (
                Method::POST,
                task_path(task, ":subscribe"),
                self.task_params(task),
            ),
            Operation::Subscribe { task } => {
                (Method::GET, task_path(task, ":subscribe"), Value::Null)
            }
            Operation::Cancel { task } => (
                Method::POST,
                task_path(task, ":cancel"),
                self.task_params(task),
            ),
        };
        let request = self.client.request(method, self.endpoint(&path)).header(
            ACCEPT,
            accepted(operation, "application/a2a+json, application/json"),
        );
        if body.is_null() {
            return request;
        }
        let kind = if form == RequestForm::PlainJson {
            PLAIN_JSON
        } else {
            A2A_JSON
        };
        request.header(CONTENT_TYPE, kind).body(body.to_string())
    }

    /// Returns the parameters that identify a task.
    fn task_params(&self, task: &str) -> Value {
        match &self.interface.tenant {
            Some(tenant) => json!({ "id": task, "tenant": tenant }),
            None => json!({ "id": task }),
        }
    }

    /// Returns a URL below the interface. If the interface has a tenant, the path starts with it.
    fn endpoint(&self, path: &[String]) -> Url {
        let mut url = self.interface.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            segments.extend(self.interface.tenant.iter());
            segments.extend(path);
        }
        url
    }
}

/// The form of a request, where servers differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestForm {
    Default,
    /// Subscribes with `POST`, because the specification contradicts itself about the method.
    SubscribeByPost,
    /// With `application/json`, for servers that do not know `application/a2a+json`.
    PlainJson,
}

fn task_path(task: &str, verb: &str) -> Vec<String> {
    vec!["tasks".to_owned(), format!("{task}{verb}")]
}

fn accepted(operation: Operation<'_>, whole: &str) -> String {
    match operation {
        Operation::SendStreaming(_) | Operation::Subscribe { .. } => {
            format!("text/event-stream, {whole}")
        }
        Operation::Send(_) | Operation::Get { .. } | Operation::Cancel { .. } => whole.to_owned(),
    }
}

/// Removes the envelope of a binding.
pub(crate) fn unwrap_envelope(binding: Binding, mut value: Value) -> Result<Value, Refusal> {
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
