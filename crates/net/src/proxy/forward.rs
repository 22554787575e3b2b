//! Forwards plain HTTP requests, which are in absolute form.

use super::exchange::Exchange;
use super::{ProxyBody, ProxyError, Shared, Stop};
use crate::budget::Budget;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use std::sync::Arc;
use url::Url;

/// The methods that the proxy forwards. Others, such as TRACE, would only reveal details of the proxy.
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
) -> Result<Response<ProxyBody>, ProxyError> {
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
fn target(request: &Request<Incoming>) -> Result<Url, ProxyError> {
    let refuse = |text| Err(ProxyError::Request(StatusCode::BAD_REQUEST, text));
    if !METHODS.contains(request.method()) {
        let text = "the proxy does not forward this method";
        return Err(ProxyError::Request(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    match request.uri().scheme_str() {
        None => return refuse("this is a proxy; send requests with an absolute URL"),
        Some("https") => return refuse("use CONNECT for https"),
        Some(_) => {}
    }
    match Url::parse(&request.uri().to_string()) {
        Ok(url) => Ok(url),
        Err(_) => refuse("the URL is not valid"),
    }
}
