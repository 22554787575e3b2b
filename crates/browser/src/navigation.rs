//! Navigation to a URL, and plain descriptions of its errors.

use crate::tabs::Tabs;
use crate::{BrowserError, Page, Settled};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Timeout for the first bytes of a page, redirects included.
const OPEN_TIME: Duration = Duration::from_secs(30);

/// Time for the browser to start an announced download.
const DOWNLOAD_START_TIME: Duration = Duration::from_secs(10);

/// The result of opening a URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Page(Settled),
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
    pub(crate) async fn open(&self, address: &str) -> Result<Opened, BrowserError> {
        let downloads = self.browser().tabs().downloads.starts;
        let params = json!({ "url": address });
        let navigation =
            self.session()
                .call_within::<Navigation>(OPEN_TIME, "Page.navigate", params);
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
            // Its event comes after the reply.
            let started = |tabs: &Tabs| (tabs.downloads.starts > downloads).then_some(());
            self.browser()
                .wait_for(DOWNLOAD_START_TIME, started)
                .await?;
            return Ok(Opened::Download);
        }
        if let Some(error) = navigation.error_text {
            return Err(failed(describe(&error)));
        }
        Ok(Opened::Page(self.settle().await?))
    }

    /// Goes back in the history; returns whether there was a previous page.
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
        match self.browser().wait_for(OPEN_TIME, changed).await {
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

/// Translates network errors of the browser into plain words.
const WORDS: [(&str, &str); 16] = [
    ("net::ERR_NAME_NOT_RESOLVED", "there is no such host"),
    (
        "net::ERR_CONNECTION_REFUSED",
        "the host refuses connections",
    ),
    (
        "net::ERR_CONNECTION_RESET",
        "the host broke the connection off",
    ),
    (
        "net::ERR_CONNECTION_CLOSED",
        "the host broke the connection off",
    ),
    (
        "net::ERR_CONNECTION_TIMED_OUT",
        "the host did not answer in time",
    ),
    ("net::ERR_TIMED_OUT", "the host did not answer in time"),
    ("net::ERR_EMPTY_RESPONSE", "the host sent nothing"),
    (
        "net::ERR_TOO_MANY_REDIRECTS",
        "the site redirects without end",
    ),
    (
        "net::ERR_TUNNEL_CONNECTION_FAILED",
        "the host cannot be reached",
    ),
    (
        "net::ERR_PROXY_CONNECTION_FAILED",
        "lango's proxy does not answer",
    ),
    (
        "net::ERR_INVALID_AUTH_CREDENTIALS",
        "the site asks for a password",
    ),
    ("net::ERR_ABORTED", "the site sent no page"),
    (
        "net::ERR_BLOCKED_BY_RESPONSE",
        "the site does not allow it here",
    ),
    ("net::ERR_UNSAFE_PORT", "browsers do not open that port"),
    (
        "net::ERR_SSL_PROTOCOL_ERROR",
        "the site has no working encryption",
    ),
    ("net::ERR_INVALID_RESPONSE", "the site's answer is not HTTP"),
];

fn describe(error: &str) -> String {
    if let Some((_, words)) = WORDS.iter().find(|(known, _)| *known == error) {
        return format!("{words} ({error})");
    }
    if error.starts_with("net::ERR_CERT_") {
        return format!("the site's certificate is not valid ({error})");
    }
    error.to_owned()
}
