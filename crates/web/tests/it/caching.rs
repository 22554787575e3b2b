//! What is fetched again and what is not, by the headers of the server; the same over every store.

use crate::support::{Bench, Recorded, Reply, Site};
use lango_core::WebCache;
use lango_store::Store;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Headers = &'static [(&'static str, &'static str)];

/// Headers of a page, seconds until it is read again, and what happens then.
const MATRIX: [(Headers, u64, Second); 20] = [
    (&[], 10, Second::FromCache),
    (&[], 301, Second::Fetched),
    (&[("Cache-Control", "max-age=60")], 59, Second::FromCache),
    (&[("Cache-Control", "max-age=60")], 60, Second::Fetched),
    (
        &[("Cache-Control", "max-age=60"), ("Age", "50")],
        11,
        Second::Fetched,
    ),
    (
        &[("Cache-Control", "private, MAX-AGE=\"60\"")],
        59,
        Second::FromCache,
    ),
    (
        &[("Cache-Control", "public, s-maxage=600, max-age=1")],
        2,
        Second::Fetched,
    ),
    (&[("Cache-Control", "max-age=nonsense")], 1, Second::Fetched),
    (&[("Cache-Control", "no-store")], 0, Second::Fetched),
    (
        &[("Cache-Control", "no-cache"), ("ETag", "\"a\"")],
        0,
        Second::Confirmed,
    ),
    (&[("Cache-Control", "no-cache")], 0, Second::Fetched),
    (&[("Pragma", "no-cache")], 0, Second::Fetched),
    (
        &[("Cache-Control", "max-age=5"), ("ETag", "\"a\"")],
        6,
        Second::Confirmed,
    ),
    (
        &[
            ("Cache-Control", "max-age=5"),
            ("Last-Modified", "Mon, 16 Nov 2026 05:00:00 GMT"),
        ],
        6,
        Second::Confirmed,
    ),
    (
        &[("Expires", "Mon, 16 Nov 2026 06:44:02 GMT")],
        3599,
        Second::FromCache,
    ),
    (
        &[
            ("Expires", "Mon, 16 Nov 2026 06:44:02 GMT"),
            ("Date", "Mon, 16 Nov 2026 06:44:00 GMT"),
        ],
        3,
        Second::Fetched,
    ),
    (&[("Expires", "0")], 0, Second::Fetched),
    (&[("Vary", "*")], 0, Second::Fetched),
    (
        &[
            ("Vary", "Accept-Language, Cookie"),
            ("Cache-Control", "max-age=60"),
        ],
        5,
        Second::FromCache,
    ),
    // A tenth of the hundred days since it changed, but no more than a day.
    (
        &[("Last-Modified", "Sat, 08 Aug 2026 05:44:02 GMT")],
        86_399,
        Second::FromCache,
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    FromCache,
    Confirmed,
    Fetched,
}

/// A server that confirms what a request names.
async fn server(headers: Headers) -> Site {
    Site::serve(move |request: &Recorded| {
        let conditional = request
            .header("if-none-match")
            .or(request.header("if-modified-since"));
        let mut reply = match conditional {
            Some(_) => Reply::status(304),
            None => Reply::html("<p>words of the page"),
        };
        for (name, value) in headers {
            reply = reply.with(name, value);
        }
        reply
    })
    .await
}

async fn check_matrix(cache: Arc<dyn WebCache>) {
    for (headers, seconds, expected) in MATRIX {
        let site = server(headers).await;
        let bench = Bench::with(&[&site], Arc::clone(&cache), Default::default());
        assert!(
            bench
                .fetch(&site.url("/"))
                .await
                .contains("words of the page")
        );
        bench.clock.advance(seconds);
        assert!(
            bench
                .fetch(&site.url("/"))
                .await
                .contains("words of the page")
        );
        let requests = site.requests();
        let second = match requests.get(1) {
            None => Second::FromCache,
            Some(request) if request.header("if-none-match").is_some() => Second::Confirmed,
            Some(request) if request.header("if-modified-since").is_some() => Second::Confirmed,
            Some(_) => Second::Fetched,
        };
        assert_eq!(second, expected, "{headers:?} after {seconds} s");
    }
}

#[tokio::test]
async fn headers_decide_what_is_fetched_again_in_memory() {
    check_matrix(Arc::new(Store::in_memory())).await;
}

#[tokio::test]
async fn headers_decide_what_is_fetched_again_with_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("sqlite:{}", folder.path().join("lango.db").display());
    check_matrix(Arc::new(Store::at(&place, "root".into()).unwrap())).await;
}

#[tokio::test]
async fn headers_decide_what_is_fetched_again_with_postgresql() {
    let place = lango_testkit::postgres::empty();
    check_matrix(Arc::new(Store::at(&place, "root".into()).unwrap())).await;
}

#[tokio::test]
async fn the_age_of_a_copy_is_shown_and_fresh_fetches_it_again() {
    let site = server(&[("Cache-Control", "max-age=3600"), ("ETag", "\"a\"")]).await;
    let bench = Bench::new(&[&site]);
    let url = site.url("/");
    assert!(bench.fetch(&url).await.contains("Fetched: just now\n"));
    bench.clock.advance(12 * 60);
    let text = bench.fetch(&url).await;
    assert!(
        text.contains("Fetched: 12 minutes ago (set `fresh` to fetch it again)\n"),
        "{text}"
    );
    let again = bench
        .call(json!({ "url": url, "fresh": true }))
        .await
        .unwrap();
    assert!(again.text.contains("Fetched: just now\n"), "{}", again.text);
    // Asking for a fresh page is no question whether it changed.
    assert_eq!(site.requests().len(), 2);
    assert_eq!(site.requests()[1].header("if-none-match"), None);
}

#[tokio::test]
async fn a_page_that_was_confirmed_is_fresh_again() {
    let site = server(&[("Cache-Control", "max-age=60"), ("ETag", "\"a\"")]).await;
    let bench = Bench::new(&[&site]);
    for seconds in [0, 61, 59] {
        bench.clock.advance(seconds);
        bench.fetch(&site.url("/")).await;
    }
    assert_eq!(site.requests().len(), 2);
    assert_eq!(site.requests()[1].header("if-none-match"), Some("\"a\""));
    bench.clock.advance(2);
    bench.fetch(&site.url("/")).await;
    assert_eq!(site.requests().len(), 3);
}

#[tokio::test]
async fn a_copy_is_removed_when_the_server_forbids_it_later() {
    let is_forbidden = Arc::new(AtomicBool::new(false));
    let forbids = Arc::clone(&is_forbidden);
    let site = Site::serve(move |_| {
        let forbidden = forbids.load(Ordering::Relaxed);
        let control = if forbidden { "no-store" } else { "max-age=60" };
        Reply::html("<p>words").with("Cache-Control", control)
    })
    .await;
    let bench = Bench::new(&[&site]);
    bench.fetch(&site.url("/")).await;
    is_forbidden.store(true, Ordering::Relaxed);
    bench
        .call(json!({ "url": site.url("/"), "fresh": true }))
        .await
        .unwrap();
    bench.fetch(&site.url("/")).await;
    assert_eq!(site.requests().len(), 3);
}

#[tokio::test]
async fn copies_of_users_are_apart_and_errors_are_not_stored() {
    let site = Site::serve(|request| match request.target.as_str() {
        "/gone" => Reply::status(404).with("Cache-Control", "max-age=60"),
        _ => Reply::html("<p>words").with("Cache-Control", "max-age=60"),
    })
    .await;
    let bench = Bench::new(&[&site]);
    for user in ["ann", "bob", "ann"] {
        bench
            .call_as(user, json!({ "url": site.url("/") }))
            .await
            .unwrap();
    }
    assert_eq!(site.requests().len(), 2);
    bench.error(&site.url("/gone")).await;
    bench.error(&site.url("/gone")).await;
    assert_eq!(site.requests().len(), 4);
}
