//! Plain requests in absolute form.

use super::exchange::Exchange;
use super::{Failure, ProxyBody, Shared, Stop};
use crate::budget::Budget;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use std::sync::Arc;
use url::Url;

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
    let exchange = Exchange {
        shared,
        url,
        destination,
        budget,
        stopped,
    };
    exchange.run(request).await
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
