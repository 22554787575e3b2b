//! Waits until a page settles: it is loaded, the network has been quiet for half a second, and the document has not
//! changed for a tenth of a second. Gives up after ten seconds if the page is still loading, and after two if only its
//! content keeps changing, for example because of a clock or an endless animation.

use crate::{BrowserError, Page};
use std::time::{Duration, Instant};

/// How long the network must be quiet.
const QUIET_NETWORK: Duration = Duration::from_millis(500);
/// How long the document must not change, in milliseconds.
const QUIET_DOCUMENT_MS: u64 = 100;
/// Maximum time to wait for a document that keeps changing.
const CHANGING_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time to wait for a page.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of waiting for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleResult {
    /// What was still happening at the timeout; `None` if the page settled.
    pub pending: Option<String>,
}

impl Page {
    /// Waits until the page settles, for at most ten seconds.
    pub async fn settle(&self) -> Result<SettleResult, BrowserError> {
        self.settle_within(SETTLE_TIMEOUT).await
    }

    /// Waits until the page settles, for at most `limit`.
    pub async fn settle_within(&self, limit: Duration) -> Result<SettleResult, BrowserError> {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.wait_for_network(left).await? {
                return Ok(self.unsettled());
            }
            let started = Instant::now();
            let left = end.saturating_duration_since(started).min(CHANGING_TIMEOUT);
            let before = self.document();
            let is_quiet = self.wait_for_document(left).await?;
            if before != self.document() || !self.is_network_quiet() {
                continue;
            }
            if is_quiet {
                return Ok(SettleResult { pending: None });
            }
            if started.elapsed() >= CHANGING_TIMEOUT {
                return Ok(self.unsettled());
            }
        }
    }

    /// Waits for a quiet network; returns `false` on timeout.
    async fn wait_for_network(&self, limit: Duration) -> Result<bool, BrowserError> {
        let mut changes = self.browser().shared.changes.subscribe();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                self.expect_alive()?;
                let time_until_quiet =
                    self.read(|tab| tab.time_until_quiet(QUIET_NETWORK, Instant::now()));
                match time_until_quiet.flatten() {
                    Some(Duration::ZERO) => return Ok(true),
                    Some(rest) => {
                        // Whether the time passed or something changed, the loop checks again.
                        let _ = tokio::time::timeout(rest, changes.changed()).await;
                    }
                    None => {
                        let _ = tokio::time::timeout(QUIET_NETWORK, changes.changed()).await;
                    }
                }
            }
        };
        tokio::time::timeout(limit, waiting)
            .await
            .unwrap_or(Ok(false))
    }

    /// Waits until the document stops changing; returns `false` on timeout, if the document was replaced, or if its
    /// scripts block the page.
    async fn wait_for_document(&self, limit: Duration) -> Result<bool, BrowserError> {
        let limit_ms = limit.as_millis() as u64;
        let script = format!(
            "new Promise(resolve => {{
                const observer = new MutationObserver(() => {{ clearTimeout(timer); timer = setTimeout(end, {QUIET_DOCUMENT_MS}, true); }});
                const end = isQuiet => {{ observer.disconnect(); clearTimeout(last); resolve(isQuiet); }};
                let timer = setTimeout(end, {QUIET_DOCUMENT_MS}, true);
                const last = setTimeout(end, {limit_ms}, false);
                observer.observe(document, {{ subtree: true, childList: true, attributes: true, characterData: true }});
            }})"
        );
        let frame = self.main_frame();
        let evaluation = self
            .evaluate_within(limit, self.session(), &frame, &script)
            .await;
        match evaluation {
            Ok(value) => Ok(value.as_bool() == Some(true)),
            Err(
                BrowserError::PageChanged
                | BrowserError::Protocol { .. }
                | BrowserError::TimedOut { .. },
            ) => {
                // The document was replaced; the next iteration finds the new one.
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn is_network_quiet(&self) -> bool {
        let time_until_quiet = self.read(|tab| tab.time_until_quiet(QUIET_NETWORK, Instant::now()));
        time_until_quiet.flatten() == Some(Duration::ZERO)
    }

    fn unsettled(&self) -> SettleResult {
        let pending = self.read(|tab| tab.pending(Instant::now())).flatten();
        SettleResult {
            pending: Some(pending.unwrap_or_else(|| "the page keeps changing".to_owned())),
        }
    }
}
