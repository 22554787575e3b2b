//! Forwards one request over a new connection to the destination, and returns the response. Counts the bytes of both
//! bodies. With credentials, replaces placeholders in the request and masks echoed secret values in the response.

use super::body::{Meter, RequestBody};
use super::credentials::Credentials;
use super::response_body::{Decoder, ResponseBody, unexpected_coding};
use super::{ProxyBody, ProxyError, Shared, Stop, spawn_until};
use crate::budget::Budget;
use crate::client::{MAX_HEADER_BYTES, authority, header_bytes};
use crate::destination::{Destination, host_of};
use crate::error::{EgressError, Refusal, RefusalReason};
use crate::guard::Check;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue,
    TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::http::{Extensions, response};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use lango_secrets::{Masks, Origin};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use url::Url;

/// Headers that belong to one connection, not to the message.
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

/// The context of an admitted request.
pub(super) struct Exchange<'a> {
    pub shared: &'a Arc<Shared>,
    /// The scheme, host and port of the target. The path comes from the request.
    pub url: Url,
    pub destination: Destination,
    pub budget: Budget,
    pub stopped: Stop,
}

impl Exchange<'_> {
    /// Sends the request, and returns the response once its headers have arrived.
    pub(super) async fn run(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<ProxyBody>, ProxyError> {
        let (mut parts, body) = request.into_parts();
        if self.shared.credentials.is_some() {
            self.check_host(&parts)?;
        }
        self.rewrite(&mut parts)?;
        let origin = self.origin()?;
        self.substitute(&mut parts, &origin).await?;
        let method = parts.method.clone();
        let (egress, destination) = (&self.shared.egress, &self.destination);
        let stream = egress.connect(destination, &self.budget).await?;
        let meter = Meter::new(self.shared, &self.budget, destination, self.idle_time());
        let line = parts.uri.to_string();
        let sent = line.len() + header_bytes(&parts.headers);
        self.budget.take_bytes(sent, &destination.to_string())?;
        let scan = self.shared.credentials.as_ref().map(|credentials| {
            let is_enabled = egress.is_enabled(Check::SecretPlace);
            is_enabled.then(|| (credentials.scan(), origin.clone()))
        });
        let body = RequestBody::new(meter.clone().attach(body), scan.flatten());
        let request = Request::from_parts(parts, body);
        let response = if destination.is_https() {
            let stream = egress.secure(stream, destination).await?;
            self.send(stream, request, &meter).await?
        } else {
            self.send(stream, request, &meter).await?
        };
        self.receive(response, &method, meter).await
    }

    /// Refuses a request that names a host other than the target of its connection.
    fn check_host(&self, parts: &Parts) -> Result<(), ProxyError> {
        let hosts = parts.headers.get_all(HOST).iter();
        let hosts = hosts.map(|host| host.to_str().unwrap_or_default());
        let target = parts.uri.authority().map(|authority| authority.as_str());
        let mut named: Vec<&str> = hosts.chain(target).collect();
        if named.is_empty() {
            named.push("");
        }
        match named.into_iter().find(|name| !self.is_target(name)) {
            Some(name) => {
                let name = name.chars().take(100).collect();
                let reason = RefusalReason::OtherHost { name };
                Err(Refusal::new(self.destination.to_string(), reason).into())
            }
            None => Ok(()),
        }
    }

    fn is_target(&self, authority: &str) -> bool {
        let scheme = self.url.scheme();
        let url = Url::parse(&format!("{scheme}://{authority}/"));
        url.is_ok_and(|url| {
            let is_bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
            is_bare
                && url.fragment().is_none()
                && host_of(&url).as_ref() == Some(self.destination.host())
                && url.port_or_known_default() == Some(self.destination.port())
        })
    }

    /// Replaces the placeholders in the head of the request.
    async fn substitute(&self, parts: &mut Parts, origin: &Origin) -> Result<(), ProxyError> {
        let Some(credentials) = &self.shared.credentials else {
            return Ok(());
        };
        let egress = &self.shared.egress;
        credentials.apply(parts, origin, egress).await?;
        Credentials::restrict_headers(&mut parts.headers, egress);
        Ok(())
    }

    fn origin(&self) -> Result<Origin, ProxyError> {
        let origin = self.destination.origin();
        origin.ok_or_else(|| {
            Refusal::new(self.destination.to_string(), RefusalReason::BadHost).into()
        })
    }

    /// Returns how long the exchange may be idle. With TLS this is the limit of tunnels, because without credentials
    /// the connection would be a tunnel.
    fn idle_time(&self) -> Duration {
        let limits = self.shared.egress.limits();
        if self.destination.is_https() {
            limits.tunnel_idle_time
        } else {
            limits.idle_time
        }
    }

    /// Rewrites the request for the destination: in origin form, with the target as `Host`, whatever the client sent.
    fn rewrite(&self, parts: &mut Parts) -> Result<(), ProxyError> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') || path == "*" {
            path.to_owned()
        } else {
            // `http://host?query` and `OPTIONS http://host`.
            format!("/{path}")
        };
        let unreadable = || ProxyError::Request(StatusCode::BAD_REQUEST, "the URL is not valid");
        parts.uri = path.parse().map_err(|_| unreadable())?;
        parts.version = hyper::Version::HTTP_11;
        parts.extensions = Extensions::new();
        remove_hop_by_hop(&mut parts.headers);
        parts.headers.remove(EXPECT);
        let host = authority(&self.url).map_err(|_| unreadable())?;
        parts.headers.insert(HOST, host);
        let close = HeaderValue::from_static("close");
        parts.headers.insert(CONNECTION, close);
        Ok(())
    }

    async fn send<S>(
        &self,
        stream: S,
        request: Request<RequestBody>,
        meter: &Meter,
    ) -> Result<Response<Incoming>, ProxyError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let refusal = request.body().refusal();
        let exchange = async {
            let (mut sender, connection) = http1::Builder::new()
                .max_buf_size(MAX_HEADER_BYTES)
                .handshake(TokioIo::new(stream))
                .await?;
            // If the connection fails, the request reports the failure.
            spawn_until(self.stopped.clone(), async move { drop(connection.await) });
            sender.send_request(request).await
        };
        let mut exchange = pin!(exchange);
        let limits = self.shared.egress.limits();
        let after = if self.destination.is_https() {
            limits.tunnel_idle_time
        } else {
            limits.request_time
        };
        let mut before = meter.bytes();
        let response = loop {
            match timeout(after, &mut exchange).await {
                Ok(response) => break response,
                // A large upload is still in progress.
                Err(_) if meter.bytes() > before => before = meter.bytes(),
                Err(_) => {
                    return Err(ProxyError::Egress(EgressError::TimedOut {
                        destination: self.destination.to_string(),
                        action: "answer",
                        after,
                    }));
                }
            }
        };
        response.map_err(|error| match refusal.get() {
            Some(refusal) => ProxyError::Body(refusal.clone()),
            None => self.unreadable(error),
        })
    }

    async fn receive(
        &self,
        response: Response<Incoming>,
        method: &Method,
        meter: Meter,
    ) -> Result<Response<ProxyBody>, ProxyError> {
        let (mut parts, body) = response.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            let error = std::io::Error::other("it switched to another protocol without a request");
            return Err(self.unreadable(error));
        }
        let transfer_codings = codings(&parts.headers, TRANSFER_ENCODING);
        remove_hop_by_hop(&mut parts.headers);
        parts.version = hyper::Version::HTTP_11;
        // Drop the reason phrase, which could contain an echo of a secret.
        parts.extensions = Extensions::new();
        let destination = self.destination.to_string();
        self.budget
            .take_bytes(header_bytes(&parts.headers), &destination)?;
        let Some(credentials) = &self.shared.credentials else {
            let body = meter.attach(body);
            return Ok(Response::from_parts(parts, body.boxed_unsync()));
        };
        let masks = if self.shared.egress.is_enabled(Check::SecretMasks) {
            credentials.masks().await
        } else {
            Masks::default()
        };
        if transfer_codings.iter().any(|coding| coding != "chunked") {
            return Err(self.unreadable(unexpected_coding()));
        }
        let has_body = !body.is_end_stream() && *method != Method::HEAD;
        let encodings = codings(&parts.headers, CONTENT_ENCODING);
        parts.headers.remove(CONTENT_ENCODING);
        if !encodings.is_empty() || !masks.is_empty() {
            // The length would reveal the length of an echoed value.
            parts.headers.remove(CONTENT_LENGTH);
        }
        mask_headers(&mut parts, &masks);
        let decoder = match encodings.as_slice() {
            [] => Ok(Decoder::Identity),
            _ if !has_body => Ok(Decoder::Identity),
            [encoding] => Decoder::new(encoding),
            _ => Err(unexpected_coding()),
        };
        let decoder = decoder.map_err(|error| self.unreadable(error))?;
        let body = ResponseBody::new(meter, body, decoder, &masks);
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }

    fn unreadable(&self, source: impl std::error::Error + Send + Sync + 'static) -> ProxyError {
        ProxyError::Egress(EgressError::Http {
            destination: self.destination.to_string(),
            source: Box::new(source),
        })
    }
}

/// Returns the codings in all lines of a header, in lower case, without `identity`.
fn codings(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).into_iter();
    let lines = lines.map(|line| String::from_utf8_lossy(line.as_bytes()).to_ascii_lowercase());
    let codings = lines.flat_map(|line| {
        let codings = line.split(',').map(|coding| coding.trim().to_owned());
        codings.collect::<Vec<_>>()
    });
    let is_coding = |coding: &String| !coding.is_empty() && coding != "identity";
    codings.filter(is_coding).collect()
}

fn mask_headers(parts: &mut response::Parts, masks: &Masks) {
    for value in parts.headers.values_mut() {
        if let std::borrow::Cow::Owned(masked) = masks.mask_bytes(value.as_bytes()) {
            let masked = HeaderValue::from_bytes(&masked);
            *value = masked.unwrap_or(HeaderValue::from_static("[secret]"));
        }
    }
    let echoes = |name: &&HeaderName| {
        let masked = masks.mask_bytes(name.as_str().as_bytes());
        matches!(masked, std::borrow::Cow::Owned(_)) || masks.is_in_lower_case(name.as_str())
    };
    let echoes: Vec<HeaderName> = parts.headers.keys().filter(echoes).cloned().collect();
    for name in echoes {
        parts.headers.remove(name);
    }
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
