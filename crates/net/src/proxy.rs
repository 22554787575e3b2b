//! An HTTP proxy whose requests all pass the guard: plain requests in absolute form, and CONNECT tunnels.
//!
//! It serves one listener, which only one sandboxed command or browser can reach. The target of a request decides where
//! the proxy connects, never the `Host` header. The proxy answers a refused request with the reason, and records the
//! refusal.

mod body;
mod credentials;
mod exchange;
mod forward;
mod intercept;
mod refusals;
mod response_body;
mod secret_access;
mod session_ca;
mod tunnel;

pub use credentials::Credentials;
pub use secret_access::{ProgramCredentials, SecretAccess};

use crate::budget::Budget;
use crate::destination::Destination;
use crate::error::{EgressError, Refusal, RefusalReason};
use crate::guard::{Check, Egress};
use crate::host_pattern::HostPattern;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use lango_core::error_chain;
use refusals::Refusals;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use url::Url;

/// The maximum number of concurrent connections and tunnels. Further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 256;
/// The maximum size of a request's headers, in bytes.
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// The time limit for the headers of a request, which includes the pause between two requests of a connection.
const HEADER_TIME: Duration = Duration::from_secs(60);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The environment variables that tell programs which proxy to use.
const PROXY_VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];
/// The environment variables that list hosts to contact without the proxy. They are set to empty strings, so that no
/// host bypasses the proxy.
const DIRECT_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

#[derive(Debug)]
pub struct Proxy;

/// The options of a proxy, in addition to the egress rules.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// The only hosts that the program may contact. `None` allows all hosts that the egress rules allow.
    pub only_hosts: Option<HostList>,
    /// The budget that requests count towards.
    pub budget: Budget,
    /// The secrets that the program can use. If there are any, the proxy terminates TLS.
    pub credentials: Option<Credentials>,
}

/// The only hosts that a program may contact.
#[derive(Debug, Clone)]
pub struct HostList {
    pub hosts: Vec<HostPattern>,
    /// The configuration key of the list, for the texts of refusals.
    pub key: String,
}

/// A running proxy. Dropping it closes the proxy and all its connections.
#[derive(Debug)]
pub struct ProxyHandle {
    shared: Arc<Shared>,
    /// Closing the channel signals the proxy to stop.
    _stop: watch::Sender<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    egress: Egress,
    only_hosts: Option<HostList>,
    credentials: Option<Credentials>,
    budget: Mutex<Budget>,
    refusals: Mutex<Refusals>,
}

type ProxyBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;
type Stop = watch::Receiver<()>;
/// A permit for one connection; a tunnel takes over the permit of its connection.
type ConnectionPermit = Arc<OwnedSemaphorePermit>;

impl Proxy {
    /// Returns the environment variables that make programs use a proxy on this port of 127.0.0.1.
    pub fn variables(port: u16) -> impl Iterator<Item = (String, String)> {
        let proxy = format!("http://127.0.0.1:{port}");
        let with = PROXY_VARIABLES.map(|name| (name.to_owned(), proxy.clone()));
        let without = DIRECT_VARIABLES.map(|name| (name.to_owned(), String::new()));
        with.into_iter().chain(without)
    }

    /// Serves a listener until the handle is dropped. Needs a tokio runtime.
    pub fn serve(
        listener: std::net::TcpListener,
        egress: Egress,
        options: ProxyOptions,
    ) -> io::Result<ProxyHandle> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let shared = Arc::new(Shared {
            egress,
            only_hosts: options.only_hosts,
            credentials: options.credentials,
            budget: Mutex::new(options.budget),
            refusals: Mutex::default(),
        });
        let (stop, stopped) = watch::channel(());
        spawn_until(
            stopped.clone(),
            accept(listener, Arc::clone(&shared), stopped),
        );
        Ok(ProxyHandle {
            shared,
            _stop: stop,
        })
    }
}

impl ProxyHandle {
    /// Returns the refusals since the last call, each destination and reason once, with a count.
    pub fn refusals(&self) -> Vec<Refusal> {
        let mut refusals = lock(&self.shared.refusals);
        refusals.take()
    }

    /// Sets the budget for new requests. Open tunnels keep their budget.
    pub fn set_budget(&self, budget: Budget) {
        *lock(&self.shared.budget) = budget;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a future until it completes or the proxy stops.
fn spawn_until(mut stopped: Stop, future: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(async move {
        tokio::select! {
            () = future => {}
            // Nothing is ever sent on this channel. It closes when the handle is dropped.
            _ = stopped.changed() => {}
        }
    });
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, stopped: Stop) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = serve(
                    stream,
                    Arc::clone(&shared),
                    stopped.clone(),
                    Arc::new(permit),
                );
                spawn_until(stopped.clone(), connection);
            }
            // The process is out of file descriptors, or the connection has already ended.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, stopped: Stop, permit: ConnectionPermit) {
    serve_http(stream, |request| {
        let (shared, stopped, permit) = (Arc::clone(&shared), stopped.clone(), Arc::clone(&permit));
        async move { answer(request, &shared, stopped, permit).await }
    })
    .await;
}

/// Serves HTTP on a connection to a client.
async fn serve_http<S, F, R>(stream: S, answer: F)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    F: Fn(Request<Incoming>) -> R,
    R: Future<Output = Response<ProxyBody>>,
{
    let service = service_fn(|request| {
        let response = answer(request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // Errors are ignored: the client disconnected or does not speak HTTP, and there is no one left to answer.
    drop(connection.await);
}

async fn answer(
    request: Request<Incoming>,
    shared: &Arc<Shared>,
    stopped: Stop,
    permit: ConnectionPermit,
) -> Response<ProxyBody> {
    let budget = lock(&shared.budget).clone();
    let answered = match (request.method(), &shared.credentials) {
        (&Method::CONNECT, Some(credentials)) => {
            let credentials = credentials.clone();
            intercept::open(request, shared, credentials, budget, stopped, permit).await
        }
        (&Method::CONNECT, None) => tunnel::open(request, shared, budget, stopped, permit).await,
        _ => forward::send(request, shared, budget, stopped).await,
    };
    answered.unwrap_or_else(|failure| shared.answer_error(failure))
}

/// Why the proxy does not serve a request.
pub(crate) enum ProxyError {
    /// The request is not a proxy request.
    Request(StatusCode, &'static str),
    /// The destination was refused, or the connection failed.
    Egress(EgressError),
    /// The body was refused, and the refusal is already recorded.
    Body(Refusal),
}

impl From<EgressError> for ProxyError {
    fn from(error: EgressError) -> Self {
        Self::Egress(error)
    }
}

impl From<Refusal> for ProxyError {
    fn from(refusal: Refusal) -> Self {
        Self::Egress(refusal.into())
    }
}

impl Shared {
    /// Checks the target of a request against the proxy's list of hosts and the egress rules.
    fn admit(&self, url: &Url) -> Result<Destination, Refusal> {
        let destination = self.egress.check(url);
        let Some(HostList { hosts, key }) = &self.only_hosts else {
            return destination;
        };
        // If a host is not listed, report that even if the egress rules refuse the host as well: the list is the more
        // specific reason.
        let target = crate::destination::host_of(url).zip(url.port_or_known_default());
        if let Some((host, port)) = target
            && self.egress.is_enabled(Check::OnlyHosts)
            && !hosts.iter().any(|entry| entry.matches(&host, port))
        {
            let target = Destination::new(host, port, url.scheme() == "https");
            let key = key.clone();
            return Err(Refusal::new(
                target.to_string(),
                RefusalReason::NotListed { key },
            ));
        }
        destination
    }

    fn record(&self, refusal: &Refusal) {
        let is_new = lock(&self.refusals).add(refusal);
        if let Some(credentials) = self.credentials.as_ref().filter(|_| is_new) {
            tokio::spawn(credentials.clone().log_blocked(refusal.clone()));
        }
    }

    fn answer_error(&self, failure: ProxyError) -> Response<ProxyBody> {
        match failure {
            ProxyError::Request(status, text) => plain_text(status, text),
            ProxyError::Body(refusal) => plain_text(StatusCode::FORBIDDEN, &refusal.to_string()),
            ProxyError::Egress(error) => {
                let status = match (&error, error.refusal()) {
                    (_, Some(refusal)) => {
                        self.record(refusal);
                        StatusCode::FORBIDDEN
                    }
                    (EgressError::TimedOut { .. }, None) => StatusCode::GATEWAY_TIMEOUT,
                    _ => StatusCode::BAD_GATEWAY,
                };
                plain_text(status, &error_chain(&error))
            }
        }
    }
}

/// Builds a response of the proxy itself. It closes the connection, so that no client mistakes it for a response of the
/// destination.
fn plain_text(status: StatusCode, text: &str) -> Response<ProxyBody> {
    let body = Full::new(Bytes::from(format!("lango: {text}\n")));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
