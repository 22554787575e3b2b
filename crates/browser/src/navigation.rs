//! Navigation to URLs and in the history, and readable descriptions of network errors.

use crate::tabs::Tabs;
use crate::{BrowserError, Page, SettleResult};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Timeout for the first bytes of a page, including redirects.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout for the browser to start a download that it announced.
const DOWNLOAD_START_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of opening a URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OpenOutcome {
    Page(SettleResult),
    /// The URL started a download; the tab still shows the previous page.
    Download,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigation {
    error_text: Option<String>,
    #[serde(default)]
    is_download: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    current_index: usize,
    entries: Vec<HistoryEntry>,
}

#[derive(Deserialize)]
struct HistoryEntry {
    id: i64,
    url: String,
}

impl Page {
    /// Opens a URL and waits until the page settles.
    pub(crate) async fn open(&self, address: &str) -> Result<OpenOutcome, BrowserError> {
        let downloads = self.browser().tabs().downloads.starts;
        let params = json!({ "url": address });
        let navigation =
            self.session()
                .call_within::<Navigation>(OPEN_TIMEOUT, "Page.navigate", params);
        let failed = |reason: String| BrowserError::Navigation {
            address: crate::notice::shorten(address),
            reason,
        };
        let navigation = match navigation.await {
            Ok(navigation) => navigation,
            Err(BrowserError::TimedOut { seconds, .. }) => {
                let _: Result<Value, _> = self.session().call("Page.stopLoading", json!({})).await;
                return Err(failed(format!(
                    "the site did not answer within {seconds} s"
                )));
            }
            Err(error) => return Err(error),
        };
        if navigation.is_download {
            // The event for the download arrives after the reply.
            let started = |tabs: &Tabs| (tabs.downloads.starts > downloads).then_some(());
            self.browser()
                .wait_for(DOWNLOAD_START_TIMEOUT, started)
                .await?;
            return Ok(OpenOutcome::Download);
        }
        if let Some(error) = navigation.error_text {
            return Err(failed(describe(&error)));
        }
        Ok(OpenOutcome::Page(self.settle().await?))
    }

    /// Goes back in the history; returns `false` if there is no previous page.
    pub(crate) async fn go_back(&self) -> Result<bool, BrowserError> {
        let history: History = self.call("Page.getNavigationHistory", json!({})).await?;
        let mut before = history.entries.into_iter().take(history.current_index);
        let Some(entry) = before
            .next_back()
            .filter(|entry| entry.url != "about:blank")
        else {
            return Ok(false);
        };
        let document = self.document();
        let params = json!({ "entryId": entry.id });
        let _: Value = self.call("Page.navigateToHistoryEntry", params).await?;
        let changed = |tabs: &Tabs| {
            let tab = tabs.tab(self.tab())?;
            (tab.loader != document || *tab.url == *entry.url).then_some(())
        };
        match self.browser().wait_for(OPEN_TIMEOUT, changed).await {
            Ok(()) => {}
            Err(BrowserError::TimedOut { seconds, .. }) => {
                return Err(BrowserError::Navigation {
                    address: entry.url,
                    reason: format!("the site did not answer within {seconds} s"),
                });
            }
            Err(error) => return Err(error),
        }
        self.settle().await?;
        Ok(true)
    }
}

/// Readable descriptions of the browser's network errors.
const NETWORK_ERRORS: [(&str, &str); 16] = [
    ("net::ERR_NAME_NOT_RESOLVED", "the host name does not exist"),
    (
        "net::ERR_CONNECTION_REFUSED",
        "the host refused the connection",
    ),
    (
        "net::ERR_CONNECTION_RESET",
        "the host closed the connection",
    ),
    (
        "net::ERR_CONNECTION_CLOSED",
        "the host closed the connection",
    ),
    (
        "net::ERR_CONNECTION_TIMED_OUT",
        "the host did not answer in time",
    ),
    ("net::ERR_TIMED_OUT", "the host did not answer in time"),
    ("net::ERR_EMPTY_RESPONSE", "the host sent nothing"),
    (
        "net::ERR_TOO_MANY_REDIRECTS",
        "the site redirects endlessly",
    ),
    (
        "net::ERR_TUNNEL_CONNECTION_FAILED",
        "the host cannot be reached",
    ),
    (
        "net::ERR_PROXY_CONNECTION_FAILED",
        "lango's proxy is not responding",
    ),
    (
        "net::ERR_INVALID_AUTH_CREDENTIALS",
        "the site requires a password",
    ),
    ("net::ERR_ABORTED", "the site sent no page"),
    (
        "net::ERR_BLOCKED_BY_RESPONSE",
        "the site blocked the response",
    ),
    ("net::ERR_UNSAFE_PORT", "browsers refuse to open this port"),
    (
        "net::ERR_SSL_PROTOCOL_ERROR",
        "the site's TLS does not work",
    ),
    (
        "net::ERR_INVALID_RESPONSE",
        "the site's response is not valid HTTP",
    ),
];

fn describe(error: &str) -> String {
    if let Some((_, description)) = NETWORK_ERRORS.iter().find(|(known, _)| *known == error) {
        return format!("{description} ({error})");
    }
    if error.starts_with("net::ERR_CERT_") {
        return format!("the site's certificate is not valid ({error})");
    }
    error.to_owned()
}
