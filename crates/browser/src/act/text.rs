//! Selects text on a page with the mouse, and waits for text to appear.

use super::step::ActionStep;
use super::target::Point;
use crate::handles::Element;
use crate::observe::{cut, one_line, quote};
use crate::{BrowserError, Page};
use serde::Deserialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// Default and maximum time to wait.
const WAIT_SECONDS: f64 = 5.0;
const MAX_WAIT_SECONDS: f64 = 30.0;
/// Interval between checks for the text.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The start and end of a text, in coordinates of its frame's window.
#[derive(Deserialize)]
struct TextEnds {
    start: [f64; 2],
    end: [f64; 2],
}

impl Page {
    /// Selects a text of an element or of the page by dragging the mouse over it. Returns a note if something else ends
    /// up selected.
    pub(super) async fn highlight(
        &self,
        element: Option<&Element>,
        text: &str,
    ) -> Result<String, BrowserError> {
        let element = &self.element_or_root(element).await?;
        let ends: Option<TextEnds> = self.call_on(element, "findText", json!([text])).await?;
        let Some(TextEnds { start, end }) = ends else {
            let text = quote(&cut(&one_line(text), 60));
            return Err(BrowserError::Argument {
                message: format!(
                    "the page has no text {text}; give the text exactly as it is on the page"
                ),
            });
        };
        let [start, end] = [start, end].map(|[x, y]| Point { x, y });
        let start = self.to_window(element, start).await?;
        let end = self.to_window(element, end).await?;
        self.drag(start, end).await?;
        // The drag may select a letter more or less, and pages may handle the drag themselves.
        let marked: String = self.call_on(element, "markText", json!([text])).await?;
        if one_line(&marked) == one_line(text) {
            return Ok(String::new());
        }
        let marked = quote(&cut(&one_line(&marked), 80));
        Ok(format!("the selected text is {marked}"))
    }

    /// Waits until a text appears in an element or on the page; without a text, waits for the given time.
    pub(super) async fn wait(
        &self,
        element: Option<&Element>,
        step: &ActionStep,
    ) -> Result<String, BrowserError> {
        let seconds = step.seconds.unwrap_or(WAIT_SECONDS);
        let limit = Duration::from_secs_f64(seconds.clamp(0.1, MAX_WAIT_SECONDS));
        let Some(text) = &step.text else {
            tokio::time::sleep(limit).await;
            return Ok(String::new());
        };
        let end = Instant::now() + limit;
        loop {
            // The document may be replaced during the wait.
            let found = async {
                let element = self.element_or_root(element).await?;
                self.call_on::<bool>(&element, "hasText", json!([text]))
                    .await
            };
            match found.await {
                Ok(true) => return Ok(String::new()),
                Ok(false) => {}
                Err(error) if element.is_some() || Instant::now() > end => return Err(error),
                Err(_) => {}
            }
            if Instant::now() > end {
                return Ok(format!(
                    "it did not appear within {} s",
                    limit.as_secs_f64()
                ));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn element_or_root(&self, element: Option<&Element>) -> Result<Element, BrowserError> {
        match element {
            Some(element) => Ok(element.clone()),
            None => self.root_element().await,
        }
    }
}
