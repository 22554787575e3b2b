//! HTTP clients, response bodies of limited size, and the credentials for the configured origin.

use super::origin::Route;
use super::settings::{RemoteSettings, RemoteTimeouts};
use lango_net::{BodyError, BodyLimits, ClientOptions, is_this_machine, service_client};
use lango_secrets::Credential;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;
use zeroize::Zeroizing;

/// How long to keep an idle connection. Servers close idle connections after five seconds or more. If lango sent a
/// message into a connection that is being closed, it could not know whether the message arrived.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// One client for this machine and one for all other hosts, created when first needed.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    local: OnceLock<Client>,
    remote: OnceLock<Client>,
}

impl Clients {
    /// Returns the client for a URL. For checked addresses, creates a client that connects only to those, whatever the
    /// name resolves to later. That client uses no proxy, because a proxy would resolve the name again.
    pub(super) fn for_route(
        &self,
        url: &Url,
        route: &Route,
        timeouts: &RemoteTimeouts,
    ) -> Result<Client, String> {
        let mut options = ClientOptions {
            connect_timeout: timeouts.connect,
            idle_connection: IDLE_TIMEOUT,
            addresses: None,
        };
        if let Route::Checked(addresses) = route {
            options.addresses = Some(addresses);
            return service_client(url, options);
        }
        let is_local = is_this_machine(url);
        let cell = if is_local { &self.local } else { &self.remote };
        if let Some(client) = cell.get() {
            return Ok(client.clone());
        }
        let client = service_client(url, options)?;
        Ok(cell.get_or_init(|| client).clone())
    }
}

/// The credentials of an agent: a bearer token and other headers with secret values. They are sent to one origin only.
pub(crate) struct Credentials {
    token: Option<Credential>,
    headers: Vec<(HeaderName, Credential)>,
    /// The configured URL, whose origin may receive the credentials.
    home: Url,
    token_source: String,
}

impl Credentials {
    pub(crate) fn new(settings: &RemoteSettings, home: Url) -> Self {
        let token = settings.token.clone();
        let headers = settings.headers.iter();
        let headers =
            headers.map(|(name, credential)| (name.clone(), credential.clone().bound_to(&home)));
        Self {
            headers: headers.collect(),
            token: token.map(|token| token.bound_to(&home)),
            home,
            token_source: settings.token_source.clone(),
        }
    }

    /// Returns the headers for a request to this URL; empty if it has another origin. Fails if a value cannot be used
    /// now.
    pub(crate) async fn headers_for(&self, url: &Url) -> Result<HeaderMap, UnusableCredential> {
        let mut all = HeaderMap::new();
        let token = self.token.iter().map(|token| (None, token));
        let others = self.headers.iter();
        let others = others.map(|(name, credential)| (Some(name), credential));
        for (name, credential) in token.chain(others) {
            if !credential.may_go_to(url) {
                continue;
            }
            let unusable = |detail: String| UnusableCredential {
                what: match name {
                    None => "token".to_owned(),
                    Some(name) => format!("header `{name}`"),
                },
                detail,
                source: match name {
                    None => self.token_source.clone(),
                    Some(_) => format!("`{}`", credential.setting()),
                },
            };
            let text = credential.text_for(url).await;
            let mut text = text.map_err(|error| unusable(error.to_string()))?;
            if name.is_none() {
                text = Zeroizing::new(format!("Bearer {}", *text));
            }
            let mut value = HeaderValue::from_str(&text).map_err(|_| {
                unusable(
                    "its value contains characters that are not allowed in a header".to_owned(),
                )
            })?;
            value.set_sensitive(true);
            all.insert(name.cloned().unwrap_or(AUTHORIZATION), value);
        }
        Ok(all)
    }

    /// Explains to the user what to do about a 401 or 403 from this URL.
    pub(crate) fn next_step(&self, url: &Url) -> String {
        let source = &self.token_source;
        let secrets = match (&self.token, self.headers.is_empty()) {
            (None, true) => return format!("it requires a token; provide it in {source}"),
            (Some(_), true) => format!("the token, which comes from {source}"),
            (None, false) => "the headers of `headersEnv`".to_owned(),
            (Some(_), false) => "the token and the headers of `headersEnv`".to_owned(),
        };
        let home = &self.home;
        if home.origin() == url.origin() {
            format!("it does not accept {secrets}")
        } else {
            let home = home.origin().ascii_serialization();
            match &self.token {
                Some(_) => format!("the token is for `{home}`, and is not sent elsewhere"),
                None => format!("{secrets} are for `{home}`, and are not sent elsewhere"),
            }
        }
    }
}

/// A token or header whose value cannot be sent.
#[derive(Debug)]
pub(crate) struct UnusableCredential {
    /// `token`, or the name of the header.
    pub what: String,
    pub detail: String,
    /// The setting that provides the value.
    pub source: String,
}

impl fmt::Display for UnusableCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            detail,
            source,
        } = self;
        write!(
            f,
            "its {what} cannot be used: {detail}; it comes from {source}"
        )
    }
}

/// Reads the body of a response. Fails if it is longer than `max_bytes`. The caller limits the time.
pub(crate) async fn body(response: &mut Response, max_bytes: usize) -> Result<Vec<u8>, BodyError> {
    let limits = BodyLimits {
        bytes: max_bytes,
        idle: None,
    };
    lango_net::read_body(response, limits, |_| Ok(())).await
}

/// Returns the innermost cause of an error, on one line.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    super::sanitize::one_line(&lango_net::root_cause(error), 200)
}
