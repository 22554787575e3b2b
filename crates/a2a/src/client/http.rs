//! HTTP clients, bodies with a bound, and the token with the one place it goes.

use super::names::Names;
use super::origin::{self, Route};
use super::settings::{Patience, RemoteSettings};
use lango_secrets::{Credential, is_plain_encoding};
use reqwest::header::{AUTHORIZATION, CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Response, Url};
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;
use zeroize::Zeroizing;

/// How long an unused connection is kept. Servers close theirs after five seconds or more; to write into one that is
/// being closed would leave us not knowing whether the task arrived.
const KEEP_UNUSED: Duration = Duration::from_secs(4);

/// One client for this machine and one for everywhere else, made when first needed.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    here: OnceLock<Client>,
    elsewhere: OnceLock<Client>,
}

impl Clients {
    /// The client for a URL. One for checked addresses knows no others, whatever the name resolves to later; a proxy would look
    /// it up again.
    pub fn for_route(
        &self,
        url: &Url,
        route: &Route,
        patience: &Patience,
    ) -> Result<Client, String> {
        match (route, url.host_str()) {
            (Route::Checked(addresses), Some(host)) => {
                let client = builder(patience).no_proxy();
                let client = client.resolve_to_addrs(host, addresses);
                client.build().map_err(|error| deepest(&error))
            }
            _ => self.for_configured(url, patience),
        }
    }

    fn for_configured(&self, url: &Url, patience: &Patience) -> Result<Client, String> {
        let is_here = origin::is_this_machine(url);
        let cell = if is_here { &self.here } else { &self.elsewhere };
        if let Some(client) = cell.get() {
            return Ok(client.clone());
        }
        let mut builder = builder(patience);
        if is_here {
            builder = builder.no_proxy();
        }
        let built = builder.build().map_err(|error| deepest(&error))?;
        Ok(cell.get_or_init(|| built).clone())
    }
}

fn builder(patience: &Patience) -> ClientBuilder {
    // Another part of the process may have chosen a provider already; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(patience.connect)
        .pool_idle_timeout(KEEP_UNUSED)
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Names)
        .user_agent(concat!("lango/", env!("CARGO_PKG_VERSION")))
}

/// A bearer token, other headers with secret values, and the only origin that they are sent to.
pub(crate) struct Token {
    credential: Option<Credential>,
    headers: Vec<(HeaderName, Credential)>,
    /// Where it belongs: the origin of the configured URL.
    home: Url,
    source: String,
}

impl Token {
    pub fn new(settings: &RemoteSettings, home: Url) -> Self {
        let credential = settings.token.clone();
        let headers = settings.headers.iter();
        let headers =
            headers.map(|(name, credential)| (name.clone(), credential.clone().bound_to(&home)));
        Self {
            headers: headers.collect(),
            credential: credential.map(|credential| credential.bound_to(&home)),
            home,
            source: settings.token_source.clone(),
        }
    }

    /// Returns the headers for a request to this URL: none if it has another origin. Fails if there is a value that cannot be
    /// used now.
    pub async fn headers_for(&self, url: &Url) -> Result<HeaderMap, UnusableCredential> {
        let mut all = HeaderMap::new();
        let token = self.credential.iter().map(|token| (None, token));
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
                    None => self.source.clone(),
                    Some(_) => format!("`{}`", credential.setting()),
                },
            };
            let text = credential.text_for(url).await;
            let mut text = text.map_err(|error| unusable(error.to_string()))?;
            if name.is_none() {
                text = Zeroizing::new(format!("Bearer {}", *text));
            }
            let mut value = HeaderValue::from_str(&text).map_err(|_| {
                unusable("its value holds characters that no header has".to_owned())
            })?;
            value.set_sensitive(true);
            all.insert(name.cloned().unwrap_or(AUTHORIZATION), value);
        }
        Ok(all)
    }

    /// What to do about a refusal at this URL.
    pub fn next_step(&self, url: &Url) -> String {
        let source = &self.source;
        let secrets = match (&self.credential, self.headers.is_empty()) {
            (None, true) => return format!("it wants a token; {source} gives it"),
            (Some(_), true) => format!("the token, which comes from {source}"),
            (None, false) => "the headers of `headersEnv`".to_owned(),
            (Some(_), false) => "the token and the headers of `headersEnv`".to_owned(),
        };
        let home = &self.home;
        if home.origin() == url.origin() {
            format!("it does not accept {secrets}")
        } else {
            let home = home.origin().ascii_serialization();
            match &self.credential {
                Some(_) => format!("the token is for `{home}`, and is not sent elsewhere"),
                None => format!("{secrets} are for `{home}`, and are not sent elsewhere"),
            }
        }
    }
}

/// A token or header whose value cannot be sent.
#[derive(Debug)]
pub(crate) struct UnusableCredential {
    /// `token`, or the header.
    pub what: String,
    pub detail: String,
    /// The setting that its value comes from.
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

/// Why a body was not read to its end.
pub(crate) enum BodyFault {
    TooLong,
    CutOff(String),
}

/// The rest of an answer, if it is not longer than this.
pub(crate) async fn body(response: &mut Response, most_bytes: usize) -> Result<Vec<u8>, BodyFault> {
    if !is_plain(response) {
        let detail = "it is compressed, which was not asked for";
        return Err(BodyFault::CutOff(detail.to_owned()));
    }
    let mut bytes = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let Some(chunk) = chunk.map_err(|error| BodyFault::CutOff(deepest(&error)))? else {
            return Ok(bytes);
        };
        if bytes.len() + chunk.len() > most_bytes {
            return Err(BodyFault::TooLong);
        }
        bytes.extend_from_slice(&chunk);
    }
}

/// Whether a body is what was sent, and not compressed.
pub(crate) fn is_plain(response: &Response) -> bool {
    let encoding = response.headers().get(CONTENT_ENCODING);
    is_plain_encoding(encoding.map(HeaderValue::as_bytes))
}

/// The innermost cause says most, and never holds the URL.
pub(crate) fn deepest(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let text = cause.to_string();
    super::words::one_line(&text, 200)
}
