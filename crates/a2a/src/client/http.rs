//! HTTP clients, bodies with a bound, and the token with the one place it goes.

use super::names::Names;
use super::origin::{self, Route};
use super::settings::{Patience, RemoteSettings};
use lango_secrets::{Credential, is_plain_encoding};
use reqwest::header::{CONTENT_ENCODING, HeaderValue};
use reqwest::{Client, ClientBuilder, Response, Url};
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

/// A bearer token and the only origin that it is sent to.
pub(crate) struct Token {
    credential: Option<Credential>,
    /// Where it belongs: the origin of the configured URL.
    home: Url,
    source: String,
}

impl Token {
    pub fn new(settings: &RemoteSettings, home: Url) -> Self {
        let credential = settings.token.clone();
        Self {
            credential: credential.map(|credential| credential.bound_to(&home)),
            home,
            source: settings.token_source.clone(),
        }
    }

    /// The header for a request to this URL, if the token goes there. Fails if there is a token that cannot be had now.
    pub async fn header_for(&self, url: &Url) -> Result<Option<HeaderValue>, String> {
        let Some(credential) = self.goes_to(url) else {
            return Ok(None);
        };
        let text = credential.text_for(url).await;
        let text = text.map_err(|error| error.to_string())?;
        let header = Zeroizing::new(format!("Bearer {}", *text));
        let mut header = HeaderValue::from_str(&header)
            .map_err(|_| "the token holds characters that no token has".to_owned())?;
        header.set_sensitive(true);
        Ok(Some(header))
    }

    /// Where it comes from, for error texts.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn goes_to(&self, url: &Url) -> Option<&Credential> {
        let credential = self.credential.as_ref()?;
        credential.may_go_to(url).then_some(credential)
    }

    /// What to do about a refusal at this URL.
    pub fn next_step(&self, url: &Url) -> String {
        let source = &self.source;
        if self.credential.is_none() {
            format!("it wants a token; {source} gives it")
        } else if self.goes_to(url).is_none() {
            let home = self.home.origin().ascii_serialization();
            format!("the token is for `{home}`, and is not sent elsewhere")
        } else {
            format!("it does not accept the token, which comes from {source}")
        }
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
