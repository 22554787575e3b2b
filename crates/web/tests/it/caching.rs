//! Which pages are fetched again, depending on the server's headers, with every kind of store.

use crate::support::{Bench, RecordedRequest, Reply, Site};
use lango_core::WebCache;
use lango_store::Store;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Headers = &'static [(&'static str, &'static str)];

/// The headers of a page, the seconds until it is read again, and how it is read then.
const MATRIX: [(Headers, u64, SecondRead); 20] = [
    (&[], 10, SecondRead::FromCache),
    (&[], 301, SecondRead::Fetched),
    (
        &[("Cache-Control", "max-age=60")],
        59,
        SecondRead::FromCache,
    ),
    (&[("Cache-Control", "max-age=60")], 60, SecondRead::Fetched),
    (
        &[("Cache-Control", "max-age=60"), ("Age", "50")],
        11,
        SecondRead::Fetched,
    ),
    (
        &[("Cache-Control", "private, MAX-AGE=\"60\"")],
        59,
        SecondRead::FromCache,
    ),
    (
        &[("Cache-Control", "public, s-maxage=600, max-age=1")],
        2,
        SecondRead::Fetched,
    ),
    (
        &[("Cache-Control", "max-age=nonsense")],
        1,
        SecondRead::Fetched,
    ),
    (&[("Cache-Control", "no-store")], 0, SecondRead::Fetched),
    (
        &[("Cache-Control", "no-cache"), ("ETag", "\"a\"")],
        0,
        SecondRead::Revalidated,
    ),
    (&[("Cache-Control", "no-cache")], 0, SecondRead::Fetched),
    (&[("Pragma", "no-cache")], 0, SecondRead::Fetched),
    (
        &[("Cache-Control", "max-age=5"), ("ETag", "\"a\"")],
        6,
        SecondRead::Revalidated,
    ),
    (
        &[
            ("Cache-Control", "max-age=5"),
            ("Last-Modified", "Mon, 16 Nov 2026 05:00:00 GMT"),
        ],
        6,
        SecondRead::Revalidated,
    ),
    (
        &[("Expires", "Mon, 16 Nov 2026 06:44:02 GMT")],
        3599,
        SecondRead::FromCache,
    ),
    (
        &[
            ("Expires", "Mon, 16 Nov 2026 06:44:02 GMT"),
            ("Date", "Mon, 16 Nov 2026 06:44:00 GMT"),
        ],
        3,
        SecondRead::Fetched,
    ),
    (&[("Expires", "0")], 0, SecondRead::Fetched),
    (&[("Vary", "*")], 0, SecondRead::Fetched),
    (
        &[
            ("Vary", "Accept-Language, Cookie"),
            ("Cache-Control", "max-age=60"),
        ],
        5,
        SecondRead::FromCache,
    ),
    // The lifetime is a tenth of the hundred days since the last change, but at most a day.
    (
        &[("Last-Modified", "Sat, 08 Aug 2026 05:44:02 GMT")],
        86_399,
        SecondRead::FromCache,
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecondRead {
    FromCache,
    Revalidated,
    Fetched,
}

/// Starts a server that answers conditional requests with 304.
async fn server(headers: Headers) -> Site {
    Site::serve(move |request: &RecordedRequest| {
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
            None => SecondRead::FromCache,
            Some(request) if request.header("if-none-match").is_some() => SecondRead::Revalidated,
            Some(request) if request.header("if-modified-since").is_some() => {
                SecondRead::Revalidated
            }
            Some(_) => SecondRead::Fetched,
        };
        assert_eq!(second, expected, "{headers:?} after {seconds} s");
    }
}

#[tokio::test]
async fn headers_decide_what_is_fetched_again_with_the_in_memory_store() {
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
    let place = lango_testkit::postgres::fresh_schema();
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
    // A request for a fresh page is not conditional.
    assert_eq!(site.requests().len(), 2);
    assert_eq!(site.requests()[1].header("if-none-match"), None);
}

#[tokio::test]
async fn a_revalidated_page_is_fresh_again() {
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
async fn a_cached_copy_is_removed_when_the_server_forbids_caching_later() {
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
async fn users_have_separate_caches_and_errors_are_not_cached() {
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
