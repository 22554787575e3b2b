//! The secrets that one sandboxed command or program can use through its proxy.
//!
//! The program has only placeholders. If a request to the bound origin has a placeholder in the bound header, the proxy
//! replaces it with the value just before sending. A placeholder anywhere else blocks the request. The proxy masks
//! responses, so that a server that echoes the value does not reveal it to the program.

mod header;

use super::session_ca::SessionCa;
use crate::error::{Refusal, RefusalReason};
use crate::guard::{Check, Egress};
use header::Substitution;
use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue, IF_RANGE, RANGE};
use hyper::http::request::Parts;
use lango_core::UserId;
use lango_secrets::{
    BindingTarget, BoundSecret, MaskStream, Masks, Origin, Placeholder, SecretSource, SecretUser,
    SecretValue,
};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An old name of `Range`, which some servers still accept.
const REQUEST_RANGE: HeaderName = HeaderName::from_static("request-range");

/// How long a resolved value is cached.
const VALUE_AGE: Duration = Duration::from_secs(5);

/// How many characters of a header name a refusal quotes.
const MAX_NAME: usize = 100;

/// The secrets of one command or program. Clones share them.
#[derive(Clone)]
pub struct Credentials(Arc<Inner>);

struct Inner {
    by: SecretUser,
    source: Arc<dyn SecretSource>,
    secrets: Vec<HeaderSecret>,
    /// The values to remove from responses.
    masks: Masks,
    /// The placeholders to find in requests, in all encodings that masks support.
    placeholders: Masks,
    ca: Arc<SessionCa>,
    /// Cached values, by the index of the secret.
    values: Mutex<HashMap<usize, (Instant, Arc<SecretValue>)>>,
}

struct HeaderSecret {
    bound: BoundSecret,
    origin: Origin,
    header: HeaderName,
    variable: String,
    placeholder: Placeholder,
    /// The text that a scan puts in place of the placeholder.
    mark: String,
    scan: Masks,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.secrets.iter().map(|secret| &secret.bound.name);
        formatter.debug_list().entries(names).finish()
    }
}

impl Credentials {
    /// Creates credentials from the bound secrets that are sent in headers. Returns `None` if there are none.
    pub(super) fn new(
        by: SecretUser,
        source: Arc<dyn SecretSource>,
        bound: &[BoundSecret],
        masks: Masks,
        ca: Arc<SessionCa>,
    ) -> Option<Self> {
        let secrets: Vec<HeaderSecret> = bound
            .iter()
            .filter_map(|bound| HeaderSecret::new(&by.user, bound))
            .collect();
        if secrets.is_empty() {
            return None;
        }
        let placeholders = Masks::default();
        for secret in &secrets {
            let text = SecretValue::new(secret.placeholder.as_str());
            placeholders.add(secret.bound.name.as_str(), &text);
        }
        Some(Self(Arc::new(Inner {
            by,
            source,
            secrets,
            masks,
            placeholders,
            ca,
            values: Mutex::default(),
        })))
    }

    /// Returns the environment variables with the placeholders. If two secrets have the same variable, the first one
    /// wins.
    pub fn variables(&self) -> Vec<(String, String)> {
        let mut variables: Vec<(String, String)> = Vec::new();
        for secret in &self.0.secrets {
            if variables.iter().all(|(name, _)| *name != secret.variable) {
                let placeholder = secret.placeholder.to_string();
                variables.push((secret.variable.clone(), placeholder));
            }
        }
        variables
    }

    pub(super) fn ca(&self) -> &SessionCa {
        &self.0.ca
    }

    /// Returns the masks of all stored values. Loads them again first, because another process may have added a value.
    pub(super) async fn masks(&self) -> Masks {
        let Inner { source, by, .. } = &*self.0;
        source.load_masks(&by.user, Duration::ZERO).await;
        self.0.masks.clone()
    }

    /// Returns whether a secret is bound to an origin with this host, with any scheme and port.
    pub(super) fn is_bound_host(&self, host: &str) -> bool {
        let mut secrets = self.0.secrets.iter();
        secrets.any(|secret| secret.origin.host() == host)
    }

    /// Replaces placeholders in the headers of a request. Refuses the request if a placeholder is anywhere else.
    pub(super) async fn apply(
        &self,
        parts: &mut Parts,
        origin: &Origin,
        egress: &Egress,
    ) -> Result<(), Refusal> {
        if egress.is_enabled(Check::SecretPlace) {
            self.check_line(parts, origin)?;
        }
        let names: Vec<HeaderName> = parts.headers.keys().cloned().collect();
        for name in names {
            self.check(name.as_str().as_bytes(), "the name of a header", origin)?;
            let values: Vec<HeaderValue> = parts.headers.get_all(&name).iter().cloned().collect();
            for value in &values {
                let used = self.used_in(value.as_bytes());
                if used.is_empty() {
                    continue;
                }
                let is_bound = |index: &usize| {
                    let secret = &self.0.secrets[*index];
                    let is_place = secret.header == name && secret.origin == *origin;
                    is_place || !egress.is_enabled(Check::SecretOrigin)
                };
                let bound: Vec<usize> = used.iter().copied().filter(is_bound).collect();
                // A secret with several bindings has the same placeholder for all of them.
                let is_covered = |index: usize| {
                    let placeholder = &self.0.secrets[index].placeholder;
                    let mut bound = bound.iter().map(|other| &self.0.secrets[*other]);
                    bound.any(|other| other.placeholder == *placeholder)
                };
                if let Some(index) = used.into_iter().find(|index| !is_covered(*index)) {
                    if egress.is_enabled(Check::SecretPlace) {
                        return Err(self.refuse(
                            index,
                            &format!("the header {}", quote_name(&name)),
                            origin,
                        ));
                    }
                    continue;
                }
                if values.len() > 1 {
                    let place = format!("one of several headers {}", quote_name(&name));
                    return Err(self.refuse(bound[0], &place, origin));
                }
                let value = self.substitute(value, &bound, &name, origin).await?;
                parts.headers.insert(&name, value);
            }
        }
        Ok(())
    }

    /// Removes headers that ask for a partial or compressed response, in which an echo could not be masked.
    pub(super) fn restrict_headers(headers: &mut HeaderMap, egress: &Egress) {
        if egress.is_enabled(Check::SecretRange) {
            // Part of an echo would not be recognised. This applies to all hosts, because a server can have several
            // names.
            headers.remove(RANGE);
            headers.remove(IF_RANGE);
            headers.remove(REQUEST_RANGE);
        }
        // The size of a compressed response would reveal how similar a guess is to the secret value.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }

    /// Creates a scanner for placeholders in a body or in trailers.
    pub(super) fn scan(&self) -> PlaceholderScan {
        PlaceholderScan {
            credentials: self.clone(),
            stream: self.0.placeholders.stream(),
        }
    }

    /// Refuses bytes that contain a placeholder.
    pub(super) fn check(&self, bytes: &[u8], place: &str, origin: &Origin) -> Result<(), Refusal> {
        match self.used_in(bytes).first() {
            Some(index) => Err(self.refuse(*index, place, origin)),
            None => Ok(()),
        }
    }

    fn check_line(&self, parts: &Parts, origin: &Origin) -> Result<(), Refusal> {
        self.check(parts.method.as_str().as_bytes(), "the method", origin)?;
        let uri = parts.uri.to_string();
        let (path, query) = uri.split_once('?').unwrap_or((&uri, ""));
        self.check(path.as_bytes(), "the path", origin)?;
        self.check(query.as_bytes(), "the query", origin)
    }

    /// Returns the indexes of the secrets whose placeholders these bytes contain.
    fn used_in(&self, bytes: &[u8]) -> Vec<usize> {
        let is_used = |secret: &HeaderSecret| {
            let mut stream = secret.scan.stream();
            stream.push(bytes);
            stream.finish();
            stream.echoes() > 0
        };
        let secrets = self.0.secrets.iter().enumerate();
        let used = secrets.filter(|(_, secret)| is_used(secret));
        used.map(|(index, _)| index).collect()
    }

    async fn substitute(
        &self,
        value: &HeaderValue,
        bound: &[usize],
        name: &HeaderName,
        origin: &Origin,
    ) -> Result<HeaderValue, Refusal> {
        let placeholders = bound.iter().map(|index| {
            let secret = &self.0.secrets[*index];
            (*index, secret.placeholder.as_str())
        });
        let Some(substitution) = Substitution::find(value.as_bytes(), placeholders) else {
            let place = format!("an unsupported format in the header {}", quote_name(name));
            return Err(self.refuse(bound[0], &place, origin));
        };
        let mut values = HashMap::new();
        for index in substitution.secrets() {
            values.insert(index, self.value(index, origin).await?);
        }
        let value = |index: usize| values.get(&index).map_or(&[][..], |value| value.expose());
        substitution.fill(value).ok_or_else(|| {
            let name = &self.0.secrets[bound[0]].bound.name;
            let detail = "its value cannot be sent in a header".to_owned();
            let reason = RefusalReason::SecretUnavailable {
                name: name.to_string(),
                detail,
            };
            Refusal::new(host_and_port(origin), reason)
        })
    }

    async fn value(&self, index: usize, origin: &Origin) -> Result<Arc<SecretValue>, Refusal> {
        let inner = &self.0;
        let cached = {
            let values = inner.values.lock().unwrap_or_else(PoisonError::into_inner);
            values.get(&index).cloned()
        };
        if let Some((_, value)) = cached.filter(|(since, _)| since.elapsed() < VALUE_AGE) {
            return Ok(value);
        }
        let bound = &inner.secrets[index].bound;
        let resolved = inner.source.resolve(&inner.by, bound).await;
        let value = resolved.map_err(|error| {
            let name = bound.name.to_string();
            let detail = error.to_string();
            Refusal::new(
                host_and_port(origin),
                RefusalReason::SecretUnavailable { name, detail },
            )
        })?;
        inner.masks.add(bound.name.as_str(), &value);
        let mut values = inner.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.insert(index, (Instant::now(), Arc::clone(&value)));
        Ok(value)
    }

    /// Records a blocked placeholder in the audit log. Does nothing for other refusals.
    pub(super) async fn log_blocked(self, refusal: Refusal) {
        let Refusal {
            destination,
            reason: RefusalReason::Placeholder { name, place, .. },
            ..
        } = &refusal
        else {
            return;
        };
        let mut secrets = self.0.secrets.iter().map(|secret| &secret.bound.name);
        if let Some(name) = secrets.find(|own| own.as_str() == name) {
            let Inner { source, by, .. } = &*self.0;
            let place = format!("{place} to {destination}");
            source.log_blocked(by, name, &place).await;
        }
    }

    fn refuse(&self, index: usize, place: &str, origin: &Origin) -> Refusal {
        let secret = &self.0.secrets[index];
        let same = |other: &&HeaderSecret| other.placeholder == secret.placeholder;
        let allowed = self.0.secrets.iter().filter(same).map(|secret| {
            let HeaderSecret { header, origin, .. } = secret;
            format!("the header `{header}` to {origin}")
        });
        let allowed: Vec<String> = allowed.collect();
        let reason = RefusalReason::Placeholder {
            name: secret.bound.name.to_string(),
            place: place.to_owned(),
            allowed: allowed.join(" or "),
        };
        Refusal::new(host_and_port(origin), reason)
    }
}

/// Quotes the name of a header. Shortens it, because the program chose it.
fn quote_name(name: &HeaderName) -> String {
    let name = name.as_str();
    match name.get(..MAX_NAME) {
        Some(start) => format!("`{start}…`"),
        None => format!("`{name}`"),
    }
}

impl HeaderSecret {
    fn new(user: &UserId, bound: &BoundSecret) -> Option<Self> {
        let BindingTarget::Header {
            origin,
            header,
            variable,
        } = &bound.binding.target
        else {
            return None;
        };
        let placeholder = Placeholder::new(user, &bound.name);
        let scan = Masks::default();
        scan.add(bound.name.as_str(), &SecretValue::new(placeholder.as_str()));
        Some(Self {
            bound: bound.clone(),
            origin: origin.clone(),
            header: header.parse().ok()?,
            variable: variable.to_string(),
            mark: format!("[secret {}]", bound.name),
            placeholder,
            scan,
        })
    }
}

/// Formats an origin in the way that refusals name destinations.
fn host_and_port(origin: &Origin) -> String {
    format!("{}:{}", origin.host(), origin.port())
}

/// A scanner for placeholders in a stream of bytes. It holds back bytes that could be the start of a placeholder.
pub(super) struct PlaceholderScan {
    credentials: Credentials,
    stream: MaskStream,
}

impl PlaceholderScan {
    /// Scans the next bytes, and returns those that can be sent. Fails if there is a placeholder.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        place: &str,
        origin: &Origin,
    ) -> Result<Vec<u8>, Refusal> {
        let passed = self.stream.push(bytes);
        self.check_passed(passed, place, origin)
    }

    /// Returns the bytes that were held back.
    pub(super) fn finish(&mut self, place: &str, origin: &Origin) -> Result<Vec<u8>, Refusal> {
        let passed = self.stream.finish();
        self.check_passed(passed, place, origin)
    }

    /// Refuses bytes outside of the stream that contain a placeholder.
    pub(super) fn check(&self, bytes: &[u8], place: &str, origin: &Origin) -> Result<(), Refusal> {
        self.credentials.check(bytes, place, origin)
    }

    fn check_passed(
        &self,
        passed: Vec<u8>,
        place: &str,
        origin: &Origin,
    ) -> Result<Vec<u8>, Refusal> {
        if self.stream.echoes() == 0 {
            return Ok(passed);
        }
        let secrets = &self.credentials.0.secrets;
        let is_marked = |secret: &HeaderSecret| {
            let mark = secret.mark.as_bytes();
            passed.windows(mark.len()).any(|part| part == mark)
        };
        let index = secrets.iter().position(is_marked).unwrap_or(0);
        Err(self.credentials.refuse(index, place, origin))
    }
}
