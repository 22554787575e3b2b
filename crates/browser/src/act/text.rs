//! Marking text with the mouse, to copy, format or quote it.

use super::target::Point;
use crate::handles::Element;
use crate::observe::{cut, one_line, quote};
use crate::{BrowserError, Page};
use serde::Deserialize;
use serde_json::json;

/// Where a text begins and ends, in the window of its frame.
#[derive(Deserialize)]
struct TextEnds {
    start: [f64; 2],
    end: [f64; 2],
}

impl Page {
    /// Marks a text of an element, or of the page, by pulling the mouse over it. Says what is marked if that is
    /// something else.
    pub(super) async fn highlight(
        &self,
        element: Option<&Element>,
        text: &str,
    ) -> Result<String, BrowserError> {
        let root;
        let element = match element {
            Some(element) => element,
            None => {
                root = self.root_element().await?;
                &root
            }
        };
        let ends: Option<TextEnds> = self.call_on(element, "findText", json!([text])).await?;
        let Some(TextEnds { start, end }) = ends else {
            let text = quote(&cut(&one_line(text), 60));
            return Err(BrowserError::Argument {
                message: format!(
                    "there is no text {text} on the page; give the words exactly as they are there"
                ),
            });
        };
        let [start, end] = [start, end].map(|[x, y]| Point { x, y });
        let start = self.to_window(element, start).await?;
        let end = self.to_window(element, end).await?;
        self.drag(start, end).await?;
        // The mouse takes letters by their middles, and pages may have plans of their own for it.
        let marked: String = self.call_on(element, "markText", json!([text])).await?;
        if one_line(&marked) == one_line(text) {
            return Ok(String::new());
        }
        let marked = quote(&cut(&one_line(&marked), 80));
        Ok(format!("what is marked is {marked}"))
    }
}
