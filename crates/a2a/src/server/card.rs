//! The agent card, served with an `ETag` and a modification time, so that clients can cache it.

use super::{Access, ServerSettings};
use a2a::{
    AgentCapabilities, AgentCard, AgentInterface, HttpAuthSecurityScheme, SecurityScheme,
    TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC,
};
use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use chrono::{DateTime, NaiveDateTime, Utc};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The cache policy: a client may cache a card for five minutes.
const MAX_AGE: &str = "public, max-age=300";

/// The format of times in HTTP headers.
const HTTP_TIME: &str = "%a, %d %b %Y %H:%M:%S GMT";

/// The serialized card with its cache headers.
pub(super) struct ServedCard {
    json: String,
    tag: String,
    since: DateTime<Utc>,
}

impl ServedCard {
    pub(super) fn new(settings: &ServerSettings, since: DateTime<Utc>) -> Self {
        let json = super::render::json(&card(settings));
        let mut hasher = DefaultHasher::new();
        json.hash(&mut hasher);
        Self {
            tag: format!("\"{:016x}\"", hasher.finish()),
            json,
            since,
        }
    }

    /// Answers a request for the card.
    pub(super) fn response(&self, headers: &HeaderMap) -> Response {
        let response = Response::builder()
            .header(CACHE_CONTROL, MAX_AGE)
            .header(ETAG, &self.tag)
            .header(LAST_MODIFIED, self.since.format(HTTP_TIME).to_string());
        let response = if self.is_known(headers) {
            response
                .status(StatusCode::NOT_MODIFIED)
                .body(Body::empty())
        } else {
            response
                .header(CONTENT_TYPE, "application/json")
                .body(Body::from(self.json.clone()))
        };
        response.unwrap_or_default()
    }

    /// Returns whether the client already has this card. Its tag takes precedence over its time.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        if let Some(tags) = headers.get(IF_NONE_MATCH) {
            let tags = tags.to_str().unwrap_or_default();
            return tags
                .split(',')
                .map(str::trim)
                .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.tag);
        }
        let time = headers.get(IF_MODIFIED_SINCE);
        let time = time.and_then(|time| time.to_str().ok());
        let time = time.and_then(|time| NaiveDateTime::parse_from_str(time, HTTP_TIME).ok());
        time.is_some_and(|time| self.since.timestamp() <= time.and_utc().timestamp())
    }
}

fn card(settings: &ServerSettings) -> AgentCard {
    const SCHEME: &str = "bearer";
    let bearer = SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
        scheme: "Bearer".to_owned(),
        description: None,
        bearer_format: None,
    });
    let is_guarded = settings.access == Access::Bearer;
    AgentCard {
        name: settings.name.clone(),
        description: settings.description.clone(),
        version: settings.version.clone(),
        supported_interfaces: vec![
            AgentInterface::new(&settings.base_url, TRANSPORT_PROTOCOL_JSONRPC),
            AgentInterface::new(&settings.base_url, TRANSPORT_PROTOCOL_HTTP_JSON),
        ],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extensions: None,
            extended_agent_card: Some(false),
        },
        default_input_modes: settings.input_modes.clone(),
        default_output_modes: settings.output_modes.clone(),
        skills: settings.skills.clone(),
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: is_guarded.then(|| HashMap::from([(SCHEME.to_owned(), bearer)])),
        security_requirements: is_guarded
            .then(|| vec![HashMap::from([(SCHEME.to_owned(), Vec::new())])]),
        signatures: None,
    }
}
