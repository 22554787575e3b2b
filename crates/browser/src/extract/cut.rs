//! Reads the start of a page that is too large to be captured. A script inside the page does the cutting, so the rest
//! is never sent.

use crate::handles::Element;
use crate::{BrowserError, Page};
use serde_json::json;

/// Maximum number of characters to read.
const MAX_CHARACTERS: usize = 4 << 20;

impl Page {
    /// Returns the start of the HTML of an element or of the main document.
    pub(super) async fn cut_html(&self, element: Option<&Element>) -> Result<String, BrowserError> {
        let root;
        let element = match element {
            Some(element) => element,
            None => {
                root = self.root_element().await?;
                &root
            }
        };
        self.call_on(element, "html", json!([MAX_CHARACTERS])).await
    }
}
