//! The beginning of a page that is too large to be captured: it is cut in the page, before anything is sent.

use crate::handles::Element;
use crate::{BrowserError, Page};
use serde_json::json;

/// How much of a page is sent, in characters.
const MOST_CHARACTERS: usize = 4 << 20;

impl Page {
    /// The beginning of the HTML of an element, or of the main document.
    pub(super) async fn cut_html(&self, element: Option<&Element>) -> Result<String, BrowserError> {
        let root;
        let element = match element {
            Some(element) => element,
            None => {
                root = self.root_element().await?;
                &root
            }
        };
        self.call_on(element, "html", json!([MOST_CHARACTERS]))
            .await
    }
}
