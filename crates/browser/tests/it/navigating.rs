//! Opening pages: what the tool says about each kind.

use crate::support::Bench;
use serde_json::json;

#[tokio::test]
async fn a_page_is_opened_and_its_title_told() {
    let bench = Bench::new().await;
    let text = bench.open("inner").await;
    assert_eq!(
        text,
        format!("Opened {} — Inner\n", bench.site.url("inner"))
    );
}
