//! An HTTP proxy whose every request passes the guard: plain requests in absolute form, and tunnels by CONNECT.
//!
//! It serves one listener, which one sandboxed command or browser can reach. Where a connection goes is decided by the
//! target of each request, never by its `Host` header. Refusals are answered with a text that says why, and collected.

mod forward;
mod refusals;
mod tunnel;

use crate::budget::Budget;
use crate::destination::Destination;
use crate::error::{EgressError, Reason, Refusal};
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
use refusals::Refusals;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use url::Url;

/// Connections and tunnels at once; more wait to be accepted.
const MOST_CONNECTIONS: usize = 256;
/// Bytes of the headers of a request.
const MOST_HEADER_BYTES: usize = 64 * 1024;
/// Time for the headers of a request, and between two requests of a connection.
const HEADER_TIME: Duration = Duration::from_secs(60);
/// Pause after the system could not accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The proxy.
#[derive(Debug)]
pub struct Proxy;

/// What a proxy allows besides the egress rules.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// The only hosts that may be contacted; nothing allows all that the rules allow.
    pub only_hosts: Option<Vec<HostPattern>>,
    /// What its requests are counted in.
    pub budget: Budget,
}

/// A proxy that is running. Dropping it ends the proxy and all its connections.
#[derive(Debug)]
pub struct ProxyHandle {
    shared: Arc<Shared>,
    /// Its end is the signal to stop.
    _stop: watch::Sender<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    egress: Egress,
    only_hosts: Option<Vec<HostPattern>>,
    budget: Mutex<Budget>,
    refusals: Mutex<Refusals>,
}

type ProxyBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;
type Stop = watch::Receiver<()>;
/// The permit of a connection, one of a limited number; a tunnel holds that of its connection.
type ConnectionPermit = Arc<OwnedSemaphorePermit>;

impl Proxy {
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
    /// Takes the refusals since the last call, each destination once, with how many times it was refused.
    pub fn refusals(&self) -> Vec<Refusal> {
        let mut refusals = lock(&self.shared.refusals);
        refusals.take()
    }

    /// Counts the requests from now on in another budget. Open tunnels stay with theirs.
    pub fn set_budget(&self, budget: Budget) {
        *lock(&self.shared.budget) = budget;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a future until it ends or the proxy is stopped.
fn spawn_until(mut stopped: Stop, future: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(async move {
        tokio::select! {
            () = future => {}
            // Nothing is ever sent: it ends when the handle is dropped.
            _ = stopped.changed() => {}
        }
    });
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, stopped: Stop) {
    let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
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
            // Out of descriptors, or a connection that ended meanwhile.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, stopped: Stop, permit: ConnectionPermit) {
    let service = service_fn(move |request| {
        let (shared, stopped, permit) = (Arc::clone(&shared), stopped.clone(), Arc::clone(&permit));
        async move { Ok::<_, Infallible>(answer(request, &shared, stopped, permit).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(MOST_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // A client that breaks off, or does not speak HTTP, was answered as far as it can be.
    drop(connection.await);
}

async fn answer(
    request: Request<Incoming>,
    shared: &Arc<Shared>,
    stopped: Stop,
    permit: ConnectionPermit,
) -> Response<ProxyBody> {
    let budget = lock(&shared.budget).clone();
    let answered = if request.method() == Method::CONNECT {
        tunnel::open(request, shared, budget, stopped, permit).await
    } else {
        forward::send(request, shared, budget, stopped).await
    };
    answered.unwrap_or_else(|failure| shared.answer_failure(failure))
}

/// Why a request is not served.
pub(crate) enum Failure {
    /// The request itself is not one for a proxy.
    Request(StatusCode, &'static str),
    /// It was refused, or the way to the destination failed.
    Egress(EgressError),
}

impl From<EgressError> for Failure {
    fn from(error: EgressError) -> Self {
        Self::Egress(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Egress(refusal.into())
    }
}

impl Shared {
    /// Judges the target of a request, by the list of this proxy and by the egress rules.
    fn admit(&self, url: &Url) -> Result<Destination, Refusal> {
        let destination = self.egress.check(url);
        let Some(hosts) = &self.only_hosts else {
            return destination;
        };
        // What is not listed is refused as such even where the rules refuse it too: the list is the nearer reason.
        let target = crate::destination::host_of(url).zip(url.port_or_known_default());
        if let Some((host, port)) = target
            && self.egress.is_enabled(Check::OnlyHosts)
            && !hosts.iter().any(|entry| entry.matches(&host, port))
        {
            let target = Destination::new(host, port, url.scheme() == "https");
            return Err(Refusal::new(target.to_string(), Reason::NotListed));
        }
        destination
    }

    fn record(&self, refusal: &Refusal) {
        lock(&self.refusals).add(refusal);
    }

    fn answer_failure(&self, failure: Failure) -> Response<ProxyBody> {
        match failure {
            Failure::Request(status, text) => plain_text(status, text),
            Failure::Egress(error) => {
                let status = match (&error, error.refusal()) {
                    (_, Some(refusal)) => {
                        self.record(refusal);
                        StatusCode::FORBIDDEN
                    }
                    (EgressError::TimedOut { .. }, None) => StatusCode::GATEWAY_TIMEOUT,
                    _ => StatusCode::BAD_GATEWAY,
                };
                plain_text(status, &error.full_text())
            }
        }
    }
}

/// An answer of the proxy itself. The connection ends with it, so that no client takes it for one of the destination's.
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
