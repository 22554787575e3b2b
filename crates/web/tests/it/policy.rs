//! The site that a call contacts, the addresses that the egress guard refuses, and that only inspected calls run.

use crate::support::{Bench, Reply, Site, caller, session};
use lango_core::{Inspection, RuleSubject, SiteAccess};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn an_inspection_names_the_site_and_whether_the_address_is_known() {
    let site = Site::serve(|_| Reply::html("<p>hi")).await;
    let bench = Bench::new(&[&site]);
    assert_eq!(bench.tool.spec().subject, RuleSubject::Site);
    let found = bench.inspect(&site.url("/a?b#c")).await.site.unwrap();
    assert_eq!(*found.host, format!("127.0.0.1:{}", site.port));
    assert_eq!(found.url.as_deref(), Some(&*site.url("/a?b#c")));
    assert!(!found.is_known);
    bench
        .links
        .add(&session(), [&*site.url("/a?b")].into_iter());
    assert!(
        bench
            .inspect(&site.url("/a?b#c"))
            .await
            .site
            .unwrap()
            .is_known
    );
    let other = bench.inspect("https://example.com/x").await.site.unwrap();
    assert_eq!(&*other.host, "example.com");
}

#[tokio::test]
async fn links_of_a_page_are_known_afterwards_but_modified_ones_are_not() {
    let page = "<title>T</title><p>See <a href=/next?q=1>the next page</a> of this story, it goes on there.";
    let site = Site::serve(move |_| Reply::html(page)).await;
    let bench = Bench::new(&[&site]);
    bench.fetch(&site.url("/")).await;
    assert!(
        bench
            .inspect(&site.url("/next?q=1"))
            .await
            .site
            .unwrap()
            .is_known
    );
    assert!(
        !bench
            .inspect(&site.url("/next?q=1&secret=2"))
            .await
            .site
            .unwrap()
            .is_known
    );
}

#[tokio::test]
async fn a_call_without_an_inspection_of_its_address_does_not_run() {
    let site = Site::serve(|_| Reply::html("<p>hi")).await;
    let bench = Bench::new(&[&site]);
    let arguments = Arc::new(json!({ "url": site.url("/a") }));
    let inspected = |host: &str, url: &str| Inspection {
        site: Some(SiteAccess {
            host: host.into(),
            url: Some(url.into()),
            is_known: true,
            summary: "read".into(),
        }),
        ..Inspection::default()
    };
    let host = format!("127.0.0.1:{}", site.port);
    for inspection in [
        Inspection::default(),
        inspected("example.com", &site.url("/a")),
        inspected(&host, &site.url("/b")),
    ] {
        let mut caller = caller();
        caller.inspection = inspection;
        let error = bench.tool.run(&caller, Arc::clone(&arguments)).await;
        assert!(
            error
                .unwrap_err()
                .message
                .contains("differs from the one that was approved")
        );
    }
    assert!(site.requests().is_empty());
}

#[tokio::test]
async fn a_refused_address_is_an_error_that_names_the_setting_to_allow_it() {
    let site = Site::serve(|_| Reply::html("<p>hi")).await;
    let bench = Bench::new(&[]);
    assert_eq!(bench.inspect(&site.url("/")).await, Inspection::default());
    let error = bench.error(&site.url("/")).await;
    assert!(error.contains("egress.allow"), "{error}");
    for (url, reason) in [
        ("file:///etc/passwd", "only `http` and `https`"),
        ("http://user:secret@example.com/", "user name or password"),
        ("no address", "is not a valid address"),
        ("http://169.254.169.254/latest", "refused"),
    ] {
        let error = bench.error(url).await;
        assert!(error.contains(reason), "{url}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    assert!(site.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_to_a_refused_address_is_not_followed() {
    let hidden = Site::serve(|_| Reply::html("<p>secret")).await;
    let target = hidden.url("/");
    let site = Site::serve(move |_| Reply::status(302).with("Location", &target)).await;
    let bench = Bench::new(&[&site]);
    let error = bench.error(&site.url("/")).await;
    assert!(error.contains("egress.allow"), "{error}");
    assert!(hidden.requests().is_empty());
}

#[tokio::test]
async fn the_number_of_requests_in_a_turn_is_limited() {
    let site = Site::serve(|_| Reply::html("<p>hi").with("Cache-Control", "no-store")).await;
    let limits = lango_net::EgressLimits {
        requests: 2,
        ..Default::default()
    };
    let cache = Arc::new(lango_store::Store::in_memory());
    let bench = Bench::with(&[&site], cache, limits);
    bench.fetch(&site.url("/1")).await;
    bench.fetch(&site.url("/2")).await;
    let error = bench.error(&site.url("/3")).await;
    assert!(error.contains("egress.maxRequests"), "{error}");
}
