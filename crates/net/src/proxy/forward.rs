//! Plain requests: each is forwarded over its own connection, and its bodies are counted.

use super::{Failure, ProxyBody, Shared, Stop, spawn_until};
use crate::budget::Budget;
use crate::client::{MOST_HEADER_BYTES, authority, header_bytes};
use crate::destination::Destination;
use crate::error::EgressError;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, timeout};
use url::Url;

/// Headers that belong to one connection and not to the message.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Forwarded methods. Others, such as TRACE, would only reveal details of the proxy.
const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

pub(super) async fn send(
    request: Request<Incoming>,
    shared: &Arc<Shared>,
    budget: Budget,
    stopped: Stop,
) -> Result<Response<ProxyBody>, Failure> {
    let url = target(&request)?;
    let destination = shared.admit(&url)?;
    let limits = shared.egress.limits().clone();
    let stream = shared.egress.connect(&destination, &budget).await?;
    let meter = Meter {
        shared: Arc::clone(shared),
        budget,
        destination: destination.to_string(),
        idle_time: limits.idle_time,
    };
    let request = outgoing(request, &url, &destination, &meter)?;
    let exchange = async {
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(MOST_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        // Its failure is also the request's, where it is reported.
        spawn_until(stopped, async move { drop(connection.await) });
        sender.send_request(request).await
    };
    let response = match timeout(limits.request_time, exchange).await {
        Ok(response) => response.map_err(|error| unreadable(&destination, error))?,
        Err(_) => {
            return Err(Failure::Egress(EgressError::TimedOut {
                destination: destination.to_string(),
                deed: "answer",
                after: limits.request_time,
            }));
        }
    };
    incoming(response, &destination, meter)
}

/// Returns the target of a request in absolute form.
fn target(request: &Request<Incoming>) -> Result<Url, Failure> {
    let refuse = |text| Err(Failure::Request(StatusCode::BAD_REQUEST, text));
    if !METHODS.contains(request.method()) {
        let text = "this method is not sent on";
        return Err(Failure::Request(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    match request.uri().scheme_str() {
        None => return refuse("this is a proxy; send requests with the whole address"),
        Some("https") => return refuse("open a tunnel with CONNECT for https"),
        Some(_) => {}
    }
    match Url::parse(&request.uri().to_string()) {
        Ok(url) => Ok(url),
        Err(_) => refuse("the address cannot be read"),
    }
}

/// Builds the forwarded request: in origin form, with the `Host` of its target regardless of its headers.
fn outgoing(
    request: Request<Incoming>,
    url: &Url,
    destination: &Destination,
    meter: &Meter,
) -> Result<Request<MeteredBody>, Failure> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        // `http://host?query` and `OPTIONS http://host`.
        format!("/{path}")
    };
    let bad_request = |_| Failure::Request(StatusCode::BAD_REQUEST, "the address cannot be read");
    parts.uri = path.parse().map_err(|_| bad_request(()))?;
    parts.version = hyper::Version::HTTP_11;
    remove_hop_by_hop(&mut parts.headers);
    parts.headers.remove(EXPECT);
    let host = authority(url).map_err(|_| bad_request(()))?;
    parts.headers.insert(HOST, host);
    parts
        .headers
        .insert(CONNECTION, HeaderValue::from_static("close"));
    let sent = path.len() + header_bytes(&parts.headers);
    meter.budget.take_bytes(sent, &destination.to_string())?;
    Ok(Request::from_parts(parts, meter.clone().attach(body)))
}

fn incoming(
    response: Response<Incoming>,
    destination: &Destination,
    meter: Meter,
) -> Result<Response<ProxyBody>, Failure> {
    let (mut parts, body) = response.into_parts();
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        let error = std::io::Error::other("it switched protocols without being asked to");
        return Err(unreadable(destination, error));
    }
    remove_hop_by_hop(&mut parts.headers);
    parts.version = hyper::Version::HTTP_11;
    meter
        .budget
        .take_bytes(header_bytes(&parts.headers), &meter.destination)?;
    Ok(Response::from_parts(
        parts,
        meter.attach(body).boxed_unsync(),
    ))
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

fn unreadable(
    destination: &Destination,
    source: impl std::error::Error + Send + Sync + 'static,
) -> Failure {
    Failure::Egress(EgressError::Http {
        destination: destination.to_string(),
        source: Box::new(source),
    })
}

/// The limits of a forwarded body.
#[derive(Clone)]
struct Meter {
    shared: Arc<Shared>,
    budget: Budget,
    destination: String,
    idle_time: Duration,
}

impl Meter {
    fn attach(self, body: Incoming) -> MeteredBody {
        MeteredBody {
            body,
            idle: Box::pin(tokio::time::sleep(self.idle_time)),
            meter: self,
        }
    }
}

/// A body that fails when the budget is used up or no byte arrives for too long.
struct MeteredBody {
    body: Incoming,
    idle: Pin<Box<Sleep>>,
    meter: Meter,
}

impl Body for MeteredBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            ready!(this.idle.as_mut().poll(context));
            return Poll::Ready(Some(Err("nothing came for too long".into())));
        };
        let now = Instant::now();
        this.idle.as_mut().reset(now + this.meter.idle_time);
        let Some(frame) = frame else {
            return Poll::Ready(None);
        };
        let frame = frame?;
        let length = frame.data_ref().map_or(0, Bytes::len);
        let counted = this
            .meter
            .budget
            .take_bytes(length, &this.meter.destination);
        Poll::Ready(Some(counted.map(|()| frame).map_err(|refusal| {
            this.meter.shared.record(&refusal);
            refusal.into()
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
