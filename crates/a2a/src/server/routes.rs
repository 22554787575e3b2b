//! The paths of the HTTP+JSON binding and the card, as one table: it is what requests are held against, and what a test walks
//! through. Each path but the card's also exists below a tenant; there is one agent here, so it makes no difference which.

use a2a::methods;

/// One route of the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The HTTP method.
    pub method: &'static str,
    /// The path, with `{name}` for what varies.
    pub path: &'static str,
    /// The protocol's name for what is done there; nothing at the JSON-RPC address, where the body says it, and for the
    /// card.
    pub operation: Option<&'static str>,
    /// Whether it is open to everybody. Only the card is.
    pub is_public: bool,
}

const fn route(method: &'static str, path: &'static str, operation: &'static str) -> Route {
    Route {
        method,
        path,
        operation: Some(operation),
        is_public: false,
    }
}

pub(super) const CARD_PATH: &str = "/.well-known/agent-card.json";

/// Every route.
pub(super) const ROUTES: [Route; 26] = [
    Route {
        method: "GET",
        path: CARD_PATH,
        operation: None,
        is_public: true,
    },
    Route {
        method: "POST",
        path: "/",
        operation: None,
        is_public: false,
    },
    route("POST", "/message:send", methods::SEND_MESSAGE),
    route("POST", "/message:stream", methods::SEND_STREAMING_MESSAGE),
    route("GET", "/tasks", methods::LIST_TASKS),
    route("GET", "/tasks/{id}", methods::GET_TASK),
    route("POST", "/tasks/{id}:cancel", methods::CANCEL_TASK),
    // The protocol's text says POST, its definition GET.
    route("POST", "/tasks/{id}:subscribe", methods::SUBSCRIBE_TO_TASK),
    route("GET", "/tasks/{id}:subscribe", methods::SUBSCRIBE_TO_TASK),
    route(
        "POST",
        "/tasks/{taskId}/pushNotificationConfigs",
        methods::CREATE_PUSH_CONFIG,
    ),
    route(
        "GET",
        "/tasks/{taskId}/pushNotificationConfigs",
        methods::LIST_PUSH_CONFIGS,
    ),
    route(
        "GET",
        "/tasks/{taskId}/pushNotificationConfigs/{id}",
        methods::GET_PUSH_CONFIG,
    ),
    route(
        "DELETE",
        "/tasks/{taskId}/pushNotificationConfigs/{id}",
        methods::DELETE_PUSH_CONFIG,
    ),
    route(
        "GET",
        "/extendedAgentCard",
        methods::GET_EXTENDED_AGENT_CARD,
    ),
    route("POST", "/{tenant}/message:send", methods::SEND_MESSAGE),
    route(
        "POST",
        "/{tenant}/message:stream",
        methods::SEND_STREAMING_MESSAGE,
    ),
    route("GET", "/{tenant}/tasks", methods::LIST_TASKS),
    route("GET", "/{tenant}/tasks/{id}", methods::GET_TASK),
    route("POST", "/{tenant}/tasks/{id}:cancel", methods::CANCEL_TASK),
    route(
        "POST",
        "/{tenant}/tasks/{id}:subscribe",
        methods::SUBSCRIBE_TO_TASK,
    ),
    route(
        "GET",
        "/{tenant}/tasks/{id}:subscribe",
        methods::SUBSCRIBE_TO_TASK,
    ),
    route(
        "POST",
        "/{tenant}/tasks/{taskId}/pushNotificationConfigs",
        methods::CREATE_PUSH_CONFIG,
    ),
    route(
        "GET",
        "/{tenant}/tasks/{taskId}/pushNotificationConfigs",
        methods::LIST_PUSH_CONFIGS,
    ),
    route(
        "GET",
        "/{tenant}/tasks/{taskId}/pushNotificationConfigs/{id}",
        methods::GET_PUSH_CONFIG,
    ),
    route(
        "DELETE",
        "/{tenant}/tasks/{taskId}/pushNotificationConfigs/{id}",
        methods::DELETE_PUSH_CONFIG,
    ),
    route(
        "GET",
        "/{tenant}/extendedAgentCard",
        methods::GET_EXTENDED_AGENT_CARD,
    ),
];

/// Where a path leads.
pub(super) enum Found {
    /// To an operation, with what the path says.
    Operation(&'static str, Vec<(&'static str, String)>),
    /// Somewhere, by these other methods.
    OtherMethods(Vec<&'static str>),
    Nowhere,
}

/// Finds the operation of a path. Where two patterns fit, the one with fewer varying segments is meant, which is the one
/// that stands first.
pub(super) fn find(method: &str, path: &str) -> Found {
    let mut others = Vec::new();
    let Some(segments) = decoded(path) else {
        return Found::Nowhere;
    };
    for route in &ROUTES {
        let Some(operation) = route.operation else {
            continue;
        };
        if let Some(named) = matched(route.path, &segments) {
            if route.method == method {
                return Found::Operation(operation, named);
            }
            others.push(route.method);
        }
    }
    if others.is_empty() {
        Found::Nowhere
    } else {
        Found::OtherMethods(others)
    }
}

/// What the varying segments are, if the path has the pattern's form.
fn matched(pattern: &'static str, segments: &[String]) -> Option<Vec<(&'static str, String)>> {
    let patterns: Vec<&'static str> = pattern[1..].split('/').collect();
    if patterns.len() != segments.len() {
        return None;
    }
    let mut named = Vec::new();
    for (pattern, segment) in patterns.into_iter().zip(segments) {
        let Some(varying) = pattern.strip_prefix('{') else {
            if pattern != segment {
                return None;
            }
            continue;
        };
        let (name, suffix) = varying.split_once('}')?;
        let value = segment.strip_suffix(suffix)?;
        // An id of ours has no colon, so what has one is meant for another pattern, or for none.
        if value.is_empty() || name != "tenant" && value.contains(':') {
            return None;
        }
        named.push((name, value.to_owned()));
    }
    Some(named)
}

/// The segments of a path as they are meant; nothing for a path that says nothing.
fn decoded(path: &str) -> Option<Vec<String>> {
    path.strip_prefix('/')?.split('/').map(unescape).collect()
}

fn unescape(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(rest.next())? * 16 + digit(rest.next())?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
