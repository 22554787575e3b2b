//! The HTTP+JSON binding: the path names the operation, and the body or the query has its fields. It reads them with
//! the same rules as JSON-RPC. It also serves the card.

use super::operations::{self, OperationAnswer};
use super::refusal::{Refusal, RefusalKind, excerpt};
use super::request::{self, MessageRules};
use super::routes::{self, CARD_PATH, RouteMatch};
use super::shared::Shared;
use super::wire;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::{Map, Value};
use std::sync::Arc;

const MEDIA_TYPE: &str = "application/a2a+json";

/// Answers a request to any path except that of JSON-RPC.
pub(super) async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let method = request.method();
    if request.uri().path() == CARD_PATH && (method == Method::GET || method == Method::HEAD) {
        return shared.card.response(request.headers());
    }
    let mut allowed = Vec::new();
    match respond(&shared, request, &mut allowed).await {
        Ok(OperationAnswer::Whole(body)) => wire::json(StatusCode::OK, MEDIA_TYPE, body),
        Ok(OperationAnswer::Stream(updates)) => {
            wire::events(&shared, updates, |update| update.to_string())
        }
        Err(refusal) => {
            let body = refusal.http_body(shared.clock.now()).to_string();
            let mut response = wire::json(refusal.status(), MEDIA_TYPE, body);
            if let Ok(methods) = HeaderValue::from_str(&allowed.join(", "))
                && !allowed.is_empty()
            {
                response.headers_mut().insert(ALLOW, methods);
            }
            response
        }
    }
}

async fn respond(
    shared: &Arc<Shared>,
    request: Request,
    allowed: &mut Vec<&'static str>,
) -> Result<OperationAnswer, Refusal> {
    let (head, body) = request.into_parts();
    let (operation, parameters) = find(&head, allowed)?;
    let user = wire::user(shared, &head.extensions)?;
    let pairs = wire::query_pairs(&head.uri);
    wire::check_version(&head.headers, &pairs)?;
    let mut large = None;
    let mut params = if head.method == Method::POST {
        let body = wire::body(shared, &head.headers, body).await?;
        large = body.large;
        fields(&head, &body.bytes)?
    } else {
        let values = pairs.into_iter();
        values
            .map(|(key, value)| (key, Value::String(value)))
            .collect()
    };
    for (name, value) in parameters {
        params.insert(name.to_owned(), Value::String(value));
    }
    let rules = MessageRules {
        backend: &*shared.backend,
        input_modes: &shared.settings.input_modes,
    };
    let operation = request::read(operation, &params, &rules)?;
    drop(params);
    operations::perform(shared, user, operation, large).await
}

/// A method of the protocol, and the parameters of the path.
type Endpoint = (&'static str, Vec<(&'static str, String)>);

fn find(head: &Parts, allowed: &mut Vec<&'static str>) -> Result<Endpoint, Refusal> {
    let path = head.uri.path();
    if path == CARD_PATH {
        *allowed = vec!["GET", "HEAD"];
    } else {
        match routes::find(head.method.as_str(), path) {
            RouteMatch::Operation(operation, parameters) => return Ok((operation, parameters)),
            RouteMatch::OtherMethods(methods) => *allowed = methods,
            RouteMatch::None => {
                let message = format!("the path `{}` does not exist", excerpt(path));
                return Err(Refusal::new(RefusalKind::NoSuchPath, message));
            }
        }
    }
    let message = format!("this path supports only {}", allowed.join(", "));
    Err(Refusal::new(RefusalKind::MethodNotAllowed, message))
}

/// Reads the fields of a body. A request without fields needs no body.
fn fields(head: &Parts, body: &[u8]) -> Result<Map<String, Value>, Refusal> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    wire::check_content_type(&head.headers)?;
    let body = serde_json::from_slice(body).map_err(|error| {
        Refusal::new(
            RefusalKind::ParseError,
            format!("the body is not JSON: {error}"),
        )
    })?;
    match body {
        Value::Object(fields) => Ok(fields),
        _ => Err(Refusal::new(
            RefusalKind::InvalidRequest,
            "the body must be a JSON object",
        )),
    }
}
