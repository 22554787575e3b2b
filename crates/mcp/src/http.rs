//! Streamable HTTP with an HTTP client that limits the size of answers. The MCP library handles events and
//! reconnecting.

use crate::confidential_url::is_confidential_url;
use crate::error::ConnectError;
use crate::names::one_line;
use crate::oauth::{Challenge, ServerAuth};
use crate::stdio::MAX_MESSAGE_BYTES;
use crate::task_support::move_execution;
use crate::traffic::{Traffic, TrafficCheck};
use futures_util::{StreamExt, stream};
use lango_core::BoxStream;
use lango_net::{
    BodyError, BodyLimits, ClientOptions, SseEvent, SseParser, is_plain_body, next_chunk,
    read_body, service_client,
};
use lango_secrets::Masks;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage, ServerNotification};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use sse_stream::Sse;
use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Maximum number of attempts to reconnect a broken stream.
const RECONNECTS: usize = 5;
/// Maximum pause between two reconnects.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The header with the session id.
const SESSION: &str = "mcp-session-id";

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Creates the transport to an HTTP server.
pub(crate) fn transport(
    server: &str,
    auth: Arc<ServerAuth>,
    traffic: Arc<Traffic>,
) -> Result<CountedTransport<StreamableHttpClientTransport<BoundedClient>>, ConnectError> {
    let not_started = |why: String| ConnectError::NotStarted { why };
    let address = &auth.address;
    let client = client(&address.url).map_err(not_started)?;
    if address.token.is_some() && !is_confidential_url(&address.url) {
        let why = "its token would be sent unencrypted; use https".to_owned();
        return Err(ConnectError::NotStarted { why });
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .max_sse_event_size(MAX_MESSAGE_BYTES);
    let mut backoff = ExponentialBackoff::default();
    backoff.max_times = Some(RECONNECTS);
    backoff.max_delay = Some(LONGEST_PAUSE);
    config.retry_config = Arc::new(backoff);
    if let Some(token) = &address.token
        && token.value.is_none()
    {
        return Err(ConnectError::Unset {
            server: server.to_owned(),
            name: token.variable.clone(),
        });
    }
    let client = BoundedClient {
        client,
        auth,
        traffic: Arc::clone(&traffic),
    };
    let masks = client.auth.masks.clone();
    let inner = StreamableHttpClientTransport::with_client(client, config);
    Ok(CountedTransport {
        inner,
        traffic,
        masks,
    })
}

/// Creates an HTTP client for an address. It follows no redirects, so a token for one address is never sent to another.
pub(crate) fn client(url: &str) -> Result<Client, String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    service_client(&url, ClientOptions::default())
}

/// A transport that counts messages, masks secrets in them, and closes when there are too many.
pub(crate) struct CountedTransport<T> {
    inner: T,
    traffic: Arc<Traffic>,
    masks: Masks,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for CountedTransport<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        "HTTP".into()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        if matches!(
            message,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
        ) {
            self.traffic.count_answer();
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = tokio::select! {
                message = self.inner.receive() => message?,
                () = self.traffic.closed() => return None,
            };
            let Some(message) = masked(&self.masks, message) else {
                self.traffic
                    .close("it sent a secret at a place where lango cannot mask it".to_owned());
                return None;
            };
            let check = match &message {
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => return Some(message),
                JsonRpcMessage::Request(_) => match self.traffic.count_request() {
                    TrafficCheck::Continue => return Some(message),
                    TrafficCheck::Close => TrafficCheck::Close,
                },
                JsonRpcMessage::Notification(notification) => {
                    if let ServerNotification::ToolListChangedNotification(_) =
                        &notification.notification
                    {
                        self.traffic.count_tool_list_change();
                    }
                    self.traffic.count_notification()
                }
            };
            if check == TrafficCheck::Close {
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// Masks secrets in a message. Returns `None` if the result is not a valid message.
fn masked(masks: &Masks, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
    if masks.is_empty() {
        return Some(message);
    }
    let bytes = serde_json::to_vec(&message).ok()?;
    match masks.mask_json_bytes(&bytes) {
        Cow::Borrowed(_) => Some(message),
        Cow::Owned(masked) => serde_json::from_slice(&masked).ok(),
    }
}

/// An HTTP client that limits the size of answers.
#[derive(Clone)]
pub(crate) struct BoundedClient {
    client: Client,
    auth: Arc<ServerAuth>,
    traffic: Arc<Traffic>,
}

impl BoundedClient {
    /// Sends a message. If the server refuses the token, refreshes it and sends the message once more.
    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let token = self.token().await?;
        let has_session = session.is_some();
        let mut request = self
            .client
            .post(uri)
            .headers(headers.into_iter().collect::<HeaderMap>())
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(message)?);
        if let Some(session) = session {
            request = request.header(SESSION, &*session);
        }
        let again = request.try_clone();
        let mut response = send(request, token.as_ref().map(|token| token.as_str())).await?;
        if let (StatusCode::UNAUTHORIZED, Some(refused), Some(again)) =
            (response.status(), token, again)
            && let Some(token) = self.auth.renewed(&refused).await
        {
            response = send(again, Some(&token)).await?;
        }
        self.read_response(response, message, has_session).await
    }

    /// Returns the token to send with a request.
    async fn token(&self) -> Result<Option<Zeroizing<String>>, HttpError> {
        let token = self.auth.token().await;
        token.map_err(|error| HttpError::UnexpectedServerResponse(error.to_string().into()))
    }

    async fn read_response(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        if !is_plain_body(&response) {
            let problem = BodyError::Compressed.to_string();
            return Err(HttpError::UnexpectedServerResponse(problem.into()));
        }
        let status = response.status();
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        let session = header(&response, SESSION);
        let kind = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            StatusCode::NOT_FOUND if has_session => Err(HttpError::SessionExpired),
            StatusCode::UNAUTHORIZED => {
                Err(self.refused(header(&response, WWW_AUTHENTICATE.as_str()).unwrap_or_default()))
            }
            StatusCode::FORBIDDEN if response.headers().contains_key(WWW_AUTHENTICATE) => {
                Err(self.refused(header(&response, WWW_AUTHENTICATE.as_str()).unwrap_or_default()))
            }
            _ if status.is_success() && kind.starts_with("text/event-stream") => Ok(
                StreamableHttpPostResponse::Sse(self.events(response), session),
            ),
            _ if kind.starts_with("application/json") => {
                let body = self.body(response).await?;
                let parsed = serde_json::from_slice::<ServerJsonRpcMessage>(&move_execution(&body));
                match parsed {
                    Ok(message)
                        if status.is_success() || matches!(message, JsonRpcMessage::Error(_)) =>
                    {
                        Ok(StreamableHttpPostResponse::Json(message, session))
                    }
                    _ if status.is_success() && !is_request => {
                        Ok(StreamableHttpPostResponse::Accepted)
                    }
                    _ => Err(self.unexpected(status, &body)),
                }
            }
            _ if status.is_success() && !is_request => Ok(StreamableHttpPostResponse::Accepted),
            _ => {
                let body = self.body(response).await?;
                Err(self.unexpected(status, &body))
            }
        }
    }

    /// Records the challenge of a server that refused a request.
    fn refused(&self, mut challenge: String) -> HttpError {
        self.auth.masks.mask_string(&mut challenge);
        self.auth.record_challenge(Challenge::read(&challenge));
        HttpError::AuthRequired(AuthRequiredError::new(challenge))
    }

    fn unexpected(&self, status: StatusCode, body: &[u8]) -> HttpError {
        // Masked before it is truncated, because the mask does not match half of a value.
        let body = self.auth.masks.mask_bytes(body);
        let start = String::from_utf8_lossy(&body[..body.len().min(800)]);
        let text = format!("{}: {}", status.as_u16(), one_line(&start, 200));
        HttpError::UnexpectedServerResponse(text.into())
    }

    /// Reads the body of an answer; fails if it is longer than a message may be.
    async fn body(&self, mut response: Response) -> Result<Vec<u8>, HttpError> {
        let limits = BodyLimits {
            bytes: MAX_MESSAGE_BYTES,
            idle: None,
        };
        let body = read_body(&mut response, limits, |_| Ok(())).await;
        body.map_err(|error| {
            let problem = match error {
                BodyError::TooLong { .. } => too_long(),
                error => error.to_string(),
            };
            HttpError::UnexpectedServerResponse(problem.into())
        })
    }

    /// Returns the events of an answer. An event that is too long closes the connection.
    fn events(&self, response: Response) -> Events {
        let reader = EventReader {
            response,
            parser: SseParser::new(MAX_MESSAGE_BYTES),
            traffic: Arc::clone(&self.traffic),
            is_over: false,
        };
        let events = stream::unfold(reader, |mut reader| async move {
            let event = reader.next().await?;
            Some((event, reader))
        });
        events.boxed()
    }
}

/// Reads the events of an answer.
struct EventReader {
    response: Response,
    parser: SseParser,
    traffic: Arc<Traffic>,
    is_over: bool,
}

impl EventReader {
    /// Returns the next event; `None` after the last one or an error.
    async fn next(&mut self) -> Option<Result<Sse, SseError>> {
        loop {
            if let Some(event) = self.parser.next_event() {
                return Some(Ok(with_execution(event)));
            }
            if self.is_over {
                return None;
            }
            let failure: Box<dyn Error + Send + Sync> =
                match next_chunk(&mut self.response, None).await {
                    Ok(Some(chunk)) => match self.parser.push(&chunk) {
                        Ok(()) => continue,
                        Err(_too_long) => {
                            self.traffic.close(too_long());
                            too_long().into()
                        }
                    },
                    // An event that the end of the stream cuts off is dropped. Its id would skip the event after a
                    // reconnect.
                    Ok(None) => return None,
                    Err(error) => error.into(),
                };
            self.is_over = true;
            return Some(Err(SseError::Body(failure)));
        }
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.post(&uri, &message, session_id, custom_headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), HttpError> {
        let token = self.token().await?.map(|token| token.to_string());
        self.client
            .delete_session(uri, session_id, token, custom_headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, HttpError> {
        let token = self.token().await?.map(|token| token.to_string());
        self.client
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                token,
                custom_headers,
                MAX_MESSAGE_BYTES,
            )
            .await
    }
}

async fn send(request: RequestBuilder, token: Option<&str>) -> Result<Response, HttpError> {
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    request.send().await.map_err(HttpError::Client)
}

/// Moves the `execution` fields of a tool list to where the library preserves them.
fn with_execution(event: SseEvent) -> Sse {
    let data = event
        .data
        .and_then(|data| match move_execution(data.as_bytes()) {
            Cow::Owned(moved) => String::from_utf8(moved).ok(),
            Cow::Borrowed(_) => Some(data),
        });
    Sse {
        event: event.kind,
        data,
        id: event.id,
        retry: event.retry,
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

fn too_long() -> String {
    format!(
        "it sent a message of more than {} MiB",
        MAX_MESSAGE_BYTES >> 20
    )
}
