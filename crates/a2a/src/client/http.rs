//! HTTP clients, bodies with a bound, and the token with the one place it goes.

use super::names::Names;
use super::origin::{self, Route};
use super::settings::{Patience, RemoteSettings};
use reqwest::header::HeaderValue;
use reqwest::{Client, ClientBuilder, Response, Url};
use std::sync::OnceLock;
use std::time::Duration;

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
    header: Option<HeaderValue>,
    value: String,
    /// Where it belongs: the origin of the configured URL.
    home: Url,
    source: String,
}

/// A token that no header can hold.
pub(crate) struct NoHeader;

impl Token {
    pub fn new(settings: &RemoteSettings, home: Url) -> Result<Self, NoHeader> {
        let value = settings.token.clone().unwrap_or_default();
        let header = if value.is_empty() {
            None
        } else {
            let mut header =
                HeaderValue::from_str(&format!("Bearer {value}")).map_err(|_| NoHeader)?;
            header.set_sensitive(true);
            Some(header)
        };
        Ok(Self {
            header,
            value,
            home,
            source: settings.token_source.clone(),
        })
    }

    /// The header for a request to this URL, if the token goes there.
    pub fn header_for(&self, url: &Url) -> Option<HeaderValue> {
        self.header
            .clone()
            .filter(|_| origin::is_same(&self.home, url))
    }

    /// What to do about a refusal at this URL.
    pub fn next_step(&self, url: &Url) -> String {
        let source = &self.source;
        if self.header.is_none() {
            format!("it wants a token; {source} gives it")
        } else if self.header_for(url).is_none() {
            let home = self.home.origin().ascii_serialization();
            format!("the token is for `{home}`, and is not sent elsewhere")
        } else {
            format!("it does not accept the token, which comes from {source}")
        }
    }

    /// Takes the token out of a text. Some servers repeat what they refuse.
    pub fn conceal(&self, text: String) -> String {
        if self.value.is_empty() || !text.contains(&self.value) {
            return text;
        }
        text.replace(&self.value, "[token]")
    }
}

/// Why a body was not read to its end.
pub(crate) enum BodyFault {
    TooLong,
    CutOff(String),
}

/// The rest of an answer, if it is not longer than this.
pub(crate) async fn body(response: &mut Response, most_bytes: usize) -> Result<Vec<u8>, BodyFault> {
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

/// The innermost cause says most, and never holds the URL.
pub(crate) fn deepest(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let text = cause.to_string();
    super::words::one_line(&text, 200)
}
