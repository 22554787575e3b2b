//! The HTTP client behind the guard. It can GET a URL and follow redirects, each of which passes the guard, or send a
//! single request without following redirects. It limits the size of responses.
//!
//! Every request opens a new connection through the guard. There is no connection pool, because a reused connection
//! would bypass later checks. There is also no proxy from the environment, and no retry.

mod body;

use crate::budget::Budget;
use crate::destination::{Destination, Host};
use crate::error::{EgressError, Refusal, RefusalReason};
use crate::guard::{Check, Guard};
use crate::tls_error;
use body::BodyReader;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    COOKIE, HOST, HeaderMap, HeaderValue, LOCATION, PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Url;

/// The maximum size of a response's headers, in bytes.
pub(crate) const MAX_HEADER_BYTES: usize = 64 * 1024;

/// The HTTP client. Clones share the guard.
#[derive(Debug, Clone)]
pub struct EgressClient {
    guard: Arc<Guard>,
}

/// A response that was read completely or up to the size limit.
#[derive(Debug, Clone)]
pub struct FetchedResponse {
    /// The URL after the last redirect.
    pub final_url: Url,
    pub status: u16,
    /// The headers. If the body was decompressed, those that describe the encoding are removed.
    pub headers: HeaderMap,
    /// The decompressed body.
    pub body: Vec<u8>,
    /// Whether the body exceeded the limit and was truncated.
    pub was_cut: bool,
    /// The URLs that redirected, in order.
    pub redirects: Vec<Url>,
    /// Whether a redirect led from `https` to `http`.
    pub was_downgraded: bool,
}

impl FetchedResponse {
    fn new(final_url: Url, mut exchange: Exchange, body: body::Body) -> Self {
        let mut headers = exchange.take_headers();
        if body.was_decoded {
            headers.remove(CONTENT_ENCODING);
            headers.remove(CONTENT_LENGTH);
        }
        Self {
            final_url,
            status: exchange.response.status().as_u16(),
            headers,
            body: body.bytes,
            was_cut: body.was_cut,
            redirects: Vec::new(),
            was_downgraded: false,
        }
    }
}

/// A single request.
#[derive(Debug, Clone)]
pub struct OutgoingRequest<'a> {
    pub url: &'a Url,
    pub headers: &'a HeaderMap,
    /// The body of a POST, as JSON; `None` for a GET.
    pub json: Option<Vec<u8>>,
    /// How many bytes of the response body to read.
    pub max_bytes: usize,
}

impl EgressClient {
    pub(crate) fn new(guard: Arc<Guard>) -> Self {
        Self { guard }
    }

    /// Gets a URL and follows redirects, each of which passes the guard and counts as a request. A response with an
    /// error status is not an error. Headers that identify the caller are not sent to another origin.
    pub async fn get(
        &self,
        url: &Url,
        headers: &HeaderMap,
        budget: &Budget,
    ) -> Result<FetchedResponse, EgressError> {
        let max_bytes = self.guard.limits.response_bytes;
        self.get_at_most(url, headers, budget, max_bytes).await
    }

    /// Gets a URL like [`get`](Self::get), with a separate size limit for the body.
    pub async fn get_at_most(
        &self,
        url: &Url,
        headers: &HeaderMap,
        budget: &Budget,
        max_bytes: usize,
    ) -> Result<FetchedResponse, EgressError> {
        let after = self.guard.limits.request_time;
        let request = self.follow(url, headers, budget, max_bytes);
        timeout(after, request)
            .await
            .unwrap_or_else(|_| Err(timed_out(url, after)))
    }

    /// Sends one request, GET or POST, without following redirects, so that its headers and body reach only this host.
    /// A response with an error status or a redirect is not an error.
    pub async fn send(
        &self,
        outgoing: OutgoingRequest<'_>,
        budget: &Budget,
    ) -> Result<FetchedResponse, EgressError> {
        let after = self.guard.limits.request_time;
        let url = outgoing.url;
        timeout(after, self.send_once(outgoing, budget))
            .await
            .unwrap_or_else(|_| Err(timed_out(url, after)))
    }

    async fn send_once(
        &self,
        outgoing: OutgoingRequest<'_>,
        budget: &Budget,
    ) -> Result<FetchedResponse, EgressError> {
        let OutgoingRequest {
            url,
            headers,
            json,
            max_bytes,
        } = outgoing;
        let destination = self.guard.check(url)?;
        let mut headers = headers.clone();
        let json = json.map(Bytes::from);
        if json.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let parts = (&headers, json.as_ref());
        let mut exchange = self.start(url, &destination, parts, budget).await?;
        let received = header_bytes(exchange.response.headers());
        budget.take_bytes(received, &destination.to_string())?;
        let body = exchange
            .read(&self.guard, &destination, budget, max_bytes)
            .await?;
        Ok(FetchedResponse::new(url.clone(), exchange, body))
    }

    async fn follow(
        &self,
        url: &Url,
        headers: &HeaderMap,
        budget: &Budget,
        max_bytes: usize,
    ) -> Result<FetchedResponse, EgressError> {
        let limit = self.guard.limits.redirects;
        let mut headers = headers.clone();
        let mut redirects = Vec::new();
        let mut was_downgraded = false;
        let mut current = url.clone();
        loop {
            let is_first = redirects.is_empty();
            let destination = self.admit(&current, is_first)?;
            let mut exchange = self
                .start(&current, &destination, (&headers, None), budget)
                .await?;
            let received = header_bytes(exchange.response.headers());
            budget.take_bytes(received, &destination.to_string())?;
            let Some(next) = redirect_target(&current, &exchange.response) else {
                let body = exchange
                    .read(&self.guard, &destination, budget, max_bytes)
                    .await?;
                return Ok(FetchedResponse {
                    redirects,
                    was_downgraded,
                    ..FetchedResponse::new(current, exchange, body)
                });
            };
            if redirects.len() >= limit {
                let url = url.to_string();
                return Err(EgressError::TooManyRedirects { url, limit });
            }
            if next.origin() != current.origin() {
                for private in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
                    headers.remove(private);
                }
            }
            was_downgraded |= current.scheme() == "https" && next.scheme() == "http";
            redirects.push(std::mem::replace(&mut current, next));
        }
    }

    fn admit(&self, url: &Url, is_first: bool) -> Result<Destination, Refusal> {
        match self.guard.check(url) {
            Err(_) if !is_first && !self.guard.is_enabled(Check::Redirects) => {
                self.guard.admit_unchecked(url)
            }
            checked => checked,
        }
    }

    async fn start(
        &self,
        url: &Url,
        destination: &Destination,
        (headers, body): (&HeaderMap, Option<&Bytes>),
        budget: &Budget,
    ) -> Result<Exchange, EgressError> {
        let stream = self.guard.connect(destination, budget).await?;
        let request =
            request(url, headers, body).map_err(|error| http_error(destination, error))?;
        let content = body.map_or(0, Bytes::len);
        let sent = request.uri().to_string().len() + header_bytes(request.headers()) + content;
        budget.take_bytes(sent, &destination.to_string())?;
        if destination.is_https() {
            let stream = self.secure(stream, destination).await?;
            exchange(stream, destination, request).await
        } else {
            exchange(stream, destination, request).await
        }
    }

    pub(crate) async fn secure(
        &self,
        stream: TcpStream,
        destination: &Destination,
    ) -> Result<TlsStream<TcpStream>, EgressError> {
        let failed = |source| EgressError::Tls {
            destination: destination.to_string(),
            source,
        };
        let name = server_name(destination.host()).map_err(failed)?;
        let config = self.guard.tls().map_err(failed)?;
        let after = self.guard.limits.connect_time;
        let handshake = TlsConnector::from(config).connect(name, stream);
        match timeout(after, handshake).await {
            Ok(secured) => secured.map_err(|error| failed(tls_error::explain(error))),
            Err(_) => Err(EgressError::TimedOut {
                destination: destination.to_string(),
                action: "finish the TLS handshake",
                after,
            }),
        }
    }
}

/// A response, and the task that drives its connection. Dropping it ends the task.
struct Exchange {
    response: Response<Incoming>,
    connection: AbortHandle,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Exchange {
    async fn read(
        &mut self,
        guard: &Guard,
        destination: &Destination,
        budget: &Budget,
        max_bytes: usize,
    ) -> Result<body::Body, EgressError> {
        let encoding = self.response.headers().get(CONTENT_ENCODING).cloned();
        let reader = BodyReader {
            destination,
            budget,
            idle_time: guard.limits.idle_time,
            max_bytes,
        };
        reader.read(self.response.body_mut(), encoding).await
    }

    fn take_headers(&mut self) -> HeaderMap {
        std::mem::take(self.response.headers_mut())
    }
}

async fn exchange<S>(
    stream: S,
    destination: &Destination,
    request: Request<Full<Bytes>>,
) -> Result<Exchange, EgressError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEADER_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| http_error(destination, error))?;
    // If the connection fails, the request reports the failure.
    let connection = tokio::spawn(async move { drop(connection.await) }).abort_handle();
    match sender.send_request(request).await {
        Ok(response) => Ok(Exchange {
            response,
            connection,
        }),
        Err(error) => {
            connection.abort();
            Err(http_error(destination, error))
        }
    }
}

fn request(
    url: &Url,
    headers: &HeaderMap,
    body: Option<&Bytes>,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let method = if body.is_some() {
        Method::POST
    } else {
        Method::GET
    };
    let mut request = Request::builder()
        .method(method)
        .uri(&url[url::Position::BeforePath..url::Position::AfterQuery])
        .body(body.cloned().map_or_else(Full::default, Full::new))?;
    let own = request.headers_mut();
    own.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("lango/", env!("CARGO_PKG_VERSION"))),
    );
    for (name, value) in headers {
        own.insert(name, value.clone());
    }
    own.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    own.insert(CONNECTION, HeaderValue::from_static("close"));
    own.insert(HOST, authority(url)?);
    Ok(request)
}

/// Returns the value of the `Host` header: the host of the URL, with the port unless it is the scheme's default.
pub(crate) fn authority(url: &Url) -> Result<HeaderValue, hyper::http::Error> {
    let text = &url[url::Position::BeforeHost..url::Position::AfterPort];
    Ok(HeaderValue::from_str(text)?)
}

/// Returns the target of a redirect, or `None` if the response is not a redirect or its target is not a URL.
fn redirect_target(url: &Url, response: &Response<Incoming>) -> Option<Url> {
    let is_redirect = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    url.join(std::str::from_utf8(location.as_bytes()).ok()?)
        .ok()
}

fn server_name(host: &Host) -> io::Result<ServerName<'static>> {
    match host {
        Host::Address(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other),
    }
}

/// Returns a TLS configuration with the certificates that the system trusts.
pub(crate) fn system_tls() -> io::Result<Arc<rustls::ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        rustls_platform_verifier::Verifier::new(Arc::clone(&provider)).map_err(io::Error::other)?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

pub(crate) fn header_bytes(headers: &HeaderMap) -> usize {
    let bytes = |(name, value): (&hyper::header::HeaderName, &HeaderValue)| {
        name.as_str().len() + value.len() + 4
    };
    headers.iter().map(bytes).sum()
}

fn http_error(
    destination: &Destination,
    source: impl std::error::Error + Send + Sync + 'static,
) -> EgressError {
    EgressError::Http {
        destination: destination.to_string(),
        source: Box::new(source),
    }
}

fn timed_out(url: &Url, after: std::time::Duration) -> EgressError {
    EgressError::TimedOut {
        destination: url.host_str().unwrap_or_default().to_owned(),
        action: "answer",
        after,
    }
}

impl Guard {
    /// Returns an unchecked destination. Used only if the attack tests disable a check.
    fn admit_unchecked(&self, url: &Url) -> Result<Destination, Refusal> {
        let host = crate::destination::host_of(url);
        let port = url.port_or_known_default();
        match (host, port) {
            (Some(host), Some(port)) => Ok(Destination::new(host, port, url.scheme() == "https")),
            _ => Err(Refusal::new(url.as_str(), RefusalReason::BadHost)),
        }
    }
}
