//! Servers at an address: streamable HTTP with our own client, whose answers are bounded. Events and reconnecting are the
//! library's.

use crate::error::ConnectError;
use crate::frames::LONGEST_MESSAGE;
use crate::names::line;
use crate::oauth::{Bearer, Challenge};
use crate::place::is_this_machine;
use crate::task_support::move_execution;
use crate::traffic::{Traffic, Verdict};
use futures_util::{StreamExt, TryStreamExt};
use lango_core::BoxStream;
use lango_secrets::{Masks, is_plain_encoding};
use reqwest::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage, ServerNotification};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use sse_stream::{Sse, SseStream};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How often a stream that broke off is taken up again, and how long is waited in between at most.
const RECONNECTS: usize = 5;
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The header that names a session.
const SESSION: &str = "mcp-session-id";

type Faulty = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The way to a server at this address.
pub(crate) fn transport(
    server: &str,
    bearer: Arc<Bearer>,
    traffic: Arc<Traffic>,
) -> Result<Watched<StreamableHttpClientTransport<BoundedClient>>, ConnectError> {
    let not_started = |why: String| ConnectError::NotStarted { why };
    let address = &bearer.address;
    let client = client(&address.url).map_err(|error| not_started(error.to_string()))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .max_sse_event_size(LONGEST_MESSAGE);
    let mut pauses = ExponentialBackoff::default();
    pauses.max_times = Some(RECONNECTS);
    pauses.max_delay = Some(LONGEST_PAUSE);
    config.retry_config = Arc::new(pauses);
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
        bearer,
        traffic: Arc::clone(&traffic),
    };
    let masks = client.bearer.masks.clone();
    let inner = StreamableHttpClientTransport::with_client(client, config);
    Ok(Watched {
        inner,
        traffic,
        masks,
    })
}

/// An HTTP client for an address. It follows nobody's directions: what is shown to one address is not shown to others.
pub(crate) fn client(url: &str) -> reqwest::Result<Client> {
    // Another part of the process may have chosen a provider already; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("lango/", env!("CARGO_PKG_VERSION")));
    // What is said to this machine stays on it.
    if Url::parse(url).is_ok_and(|url| is_this_machine(&url)) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// A transport whose messages are counted, and that ends when there were too many.
pub(crate) struct Watched<T> {
    inner: T,
    traffic: Arc<Traffic>,
    masks: Masks,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
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
            self.traffic.answered();
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = tokio::select! {
                message = self.inner.receive() => message?,
                () = self.traffic.cut_off() => return None,
            };
            let Some(message) = masked(&self.masks, message) else {
                self.traffic
                    .cut("it sent a secret where none can be masked".to_owned());
                return None;
            };
            let verdict = match &message {
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => return Some(message),
                JsonRpcMessage::Request(_) => match self.traffic.asked() {
                    Verdict::GoesOn => return Some(message),
                    Verdict::IsCut => Verdict::IsCut,
                },
                JsonRpcMessage::Notification(notification) => {
                    if let ServerNotification::ToolListChangedNotification(_) =
                        &notification.notification
                    {
                        self.traffic.note_new_tools();
                    }
                    self.traffic.unasked()
                }
            };
            if verdict == Verdict::IsCut {
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// Masks a message. Returns `None` if it is no message afterwards.
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

/// An HTTP client that reads no answer without end.
#[derive(Clone)]
pub(crate) struct BoundedClient {
    client: Client,
    bearer: Arc<Bearer>,
    traffic: Arc<Traffic>,
}

impl BoundedClient {
    /// Sends a message. What is shown is renewed once if it is refused.
    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Faulty> {
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
        let mut response = sent(request, token.as_ref().map(|token| token.as_str())).await?;
        if let (StatusCode::UNAUTHORIZED, Some(refused), Some(again)) =
            (response.status(), token, again)
            && let Some(token) = self.bearer.renewed(&refused).await
        {
            response = sent(again, Some(&token)).await?;
        }
        self.answered(response, message, has_session).await
    }

    /// What is shown with a request.
    async fn token(&self) -> Result<Option<Zeroizing<String>>, Faulty> {
        let token = self.bearer.token().await;
        token.map_err(|error| Faulty::UnexpectedServerResponse(error.to_string().into()))
    }

    async fn answered(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Faulty> {
        let encoding = response.headers().get(CONTENT_ENCODING);
        if !is_plain_encoding(encoding.map(HeaderValue::as_bytes)) {
            let problem = "its answer is compressed, which was not asked for";
            return Err(Faulty::UnexpectedServerResponse(problem.into()));
        }
        let status = response.status();
        let is_question = matches!(message, JsonRpcMessage::Request(_));
        let given = header(&response, SESSION);
        let kind = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            StatusCode::NOT_FOUND if has_session => Err(Faulty::SessionExpired),
            StatusCode::UNAUTHORIZED => {
                Err(self.refused(header(&response, WWW_AUTHENTICATE.as_str()).unwrap_or_default()))
            }
            StatusCode::FORBIDDEN if response.headers().contains_key(WWW_AUTHENTICATE) => {
                Err(self.refused(header(&response, WWW_AUTHENTICATE.as_str()).unwrap_or_default()))
            }
            _ if status.is_success() && kind.starts_with("text/event-stream") => Ok(
                StreamableHttpPostResponse::Sse(self.events(response), given),
            ),
            _ if kind.starts_with("application/json") => {
                let body = self.body(response).await?;
                let parsed = serde_json::from_slice::<ServerJsonRpcMessage>(&move_execution(&body));
                match parsed {
                    Ok(message)
                        if status.is_success() || matches!(message, JsonRpcMessage::Error(_)) =>
                    {
                        Ok(StreamableHttpPostResponse::Json(message, given))
                    }
                    _ if status.is_success() && !is_question => {
                        Ok(StreamableHttpPostResponse::Accepted)
                    }
                    _ => Err(self.unexpected(status, &body)),
                }
            }
            _ if status.is_success() && !is_question => Ok(StreamableHttpPostResponse::Accepted),
            _ => {
                let body = self.body(response).await?;
                Err(self.unexpected(status, &body))
            }
        }
    }

    /// Remembers what the server said when it refused.
    fn refused(&self, mut challenge: String) -> Faulty {
        self.bearer.masks.mask_string(&mut challenge);
        self.bearer.note(Challenge::read(&challenge));
        Faulty::AuthRequired(AuthRequiredError::new(challenge))
    }

    fn unexpected(&self, status: StatusCode, body: &[u8]) -> Faulty {
        // Masked before it is cut: half of a value would not be found.
        let body = self.bearer.masks.mask_bytes(body);
        let beginning = String::from_utf8_lossy(&body[..body.len().min(800)]);
        let text = format!("{}: {}", status.as_u16(), line(&beginning, 200));
        Faulty::UnexpectedServerResponse(text.into())
    }

    /// The body of an answer, up to the longest message.
    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Faulty> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(Faulty::Client)? {
            if body.len() + chunk.len() > LONGEST_MESSAGE {
                return Err(Faulty::UnexpectedServerResponse(too_long().into()));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The events of an answer. One that is too long ends the connection.
    fn events(&self, response: Response) -> Events {
        let traffic = Arc::clone(&self.traffic);
        let mut event = EventLength::default();
        let bytes = response.bytes_stream().map_err(io::Error::other);
        let bytes = bytes.map(move |chunk| {
            let chunk = chunk?;
            if event.add(&chunk) > LONGEST_MESSAGE {
                traffic.cut(too_long());
                return Err(io::Error::other(too_long()));
            }
            Ok(chunk)
        });
        let events = SseStream::from_bytes_stream(bytes);
        events.map_ok(with_execution).boxed()
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
    ) -> Result<StreamableHttpPostResponse, Faulty> {
        self.post(&uri, &message, session_id, custom_headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Faulty> {
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
    ) -> Result<Events, Faulty> {
        let token = self.token().await?.map(|token| token.to_string());
        self.client
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                token,
                custom_headers,
                LONGEST_MESSAGE,
            )
            .await
    }
}

async fn sent(request: RequestBuilder, token: Option<&str>) -> Result<Response, Faulty> {
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    request.send().await.map_err(Faulty::Client)
}

/// Moves the `execution` fields of a tool list to where the library keeps them.
fn with_execution(mut event: Sse) -> Sse {
    if let Some(data) = &event.data
        && let Cow::Owned(moved) = move_execution(data.as_bytes())
    {
        event.data = String::from_utf8(moved).ok();
    }
    event
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

fn too_long() -> String {
    format!(
        "it sent a message of more than {} MiB",
        LONGEST_MESSAGE >> 20
    )
}

/// How long the event is that is being read.
#[derive(Default)]
struct EventLength {
    event: usize,
    line: usize,
    after_return: bool,
}

impl EventLength {
    /// Adds a piece; gives the length of the longest event in it so far.
    fn add(&mut self, piece: &[u8]) -> usize {
        let mut longest = self.event;
        for byte in piece {
            let is_second_half = *byte == b'\n' && std::mem::take(&mut self.after_return);
            if is_second_half {
                continue;
            }
            self.after_return = *byte == b'\r';
            match byte {
                b'\n' | b'\r' if self.line == 0 => self.event = 0,
                b'\n' | b'\r' => self.line = 0,
                _ => {
                    self.line += 1;
                    self.event += 1;
                }
            }
            longest = longest.max(self.event);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_event_counts_its_lines_together_and_begins_anew_with_the_next() {
        let lengths = |text: &str| {
            let mut event = EventLength::default();
            let pieces = text.as_bytes().chunks(3);
            pieces
                .map(|piece| event.add(piece))
                .max()
                .unwrap_or_default()
        };
        for end in ["\n", "\r\n", "\r"] {
            let one = format!("data: aa{end}data: bb{end}{end}");
            assert_eq!(lengths(&one), 16, "{end:?}");
            assert_eq!(lengths(&one.repeat(5)), 16, "{end:?}");
        }
    }
}
