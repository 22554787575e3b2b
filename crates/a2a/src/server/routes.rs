//! The routes of the HTTP+JSON binding and of the card, in one table for requests and for tests. Each path except the
//! card's also exists below a tenant. The tenant is ignored, because the server has only one agent.

use a2a::methods;

/// One route of the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The HTTP method.
    pub method: &'static str,
    /// The path, with `{name}` for parameters.
    pub path: &'static str,
    /// The method of the protocol. `None` for the card, and for JSON-RPC, where the body names it.
    pub operation: Option<&'static str>,
    /// Whether the route needs no authentication. Only the card is public.
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
    // The text of the specification says POST, its proto definition says GET.
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

/// The result of looking up a path.
pub(super) enum RouteMatch {
    /// A method of the protocol, with the parameters of the path.
    Operation(&'static str, Vec<(&'static str, String)>),
    /// The path exists, but only for these HTTP methods.
    OtherMethods(Vec<&'static str>),
    None,
}

/// Finds the route of a path. The first matching pattern wins; patterns with fewer parameters come first.
pub(super) fn find(method: &str, path: &str) -> RouteMatch {
    let mut others = Vec::new();
    let Some(segments) = decode(path) else {
        return RouteMatch::None;
    };
    for route in &ROUTES {
        let Some(operation) = route.operation else {
            continue;
        };
        if let Some(parameters) = match_pattern(route.path, &segments) {
            if route.method == method {
                return RouteMatch::Operation(operation, parameters);
            }
            others.push(route.method);
        }
    }
    if others.is_empty() {
        RouteMatch::None
    } else {
        RouteMatch::OtherMethods(others)
    }
}

/// Returns the parameters of a path, or `None` if it does not match the pattern.
fn match_pattern(
    pattern: &'static str,
    segments: &[String],
) -> Option<Vec<(&'static str, String)>> {
    let patterns: Vec<&'static str> = pattern[1..].split('/').collect();
    if patterns.len() != segments.len() {
        return None;
    }
    let mut parameters = Vec::new();
    for (pattern, segment) in patterns.into_iter().zip(segments) {
        let Some(parameter) = pattern.strip_prefix('{') else {
            if pattern != segment {
                return None;
            }
            continue;
        };
        let (name, suffix) = parameter.split_once('}')?;
        let value = segment.strip_suffix(suffix)?;
        // Ids contain no colon, so a value with one belongs to another pattern or to none.
        if value.is_empty() || name != "tenant" && value.contains(':') {
            return None;
        }
        parameters.push((name, value.to_owned()));
    }
    Some(parameters)
}

/// Splits a path into percent-decoded segments. Returns `None` if it is malformed.
fn decode(path: &str) -> Option<Vec<String>> {
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
