//! Cached pages and the egress rules: a page that was fetched while its host was allowed is not shown once it is
//! refused.

use crate::support::{Bench, Reply, Site};
use lango_core::{BoxFuture, WebCache};
use lango_net::{Egress, EgressLimits, EgressRules, Resolver};
use lango_store::Store;
use serde_json::json;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Resolves every name to the loopback address.
struct Loopback;

impl Resolver for Loopback {
    fn lookup<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) })
    }
}

fn bench(allow: &[&str], deny: &[&str], cache: &Arc<dyn WebCache>) -> Bench {
    let parse = |entries: &[&str]| entries.iter().map(|entry| entry.parse().unwrap()).collect();
    let rules = EgressRules {
        allow: parse(allow),
        deny: parse(deny),
    };
    let egress = Egress::with_resolver(rules, EgressLimits::default(), Arc::new(Loopback));
    Bench::behind(egress, Arc::clone(cache))
}

/// Starts a site whose `/from` redirects to another host, which is allowed at first.
async fn redirecting_site() -> Site {
    Site::serve(|request| match request.target.split_once("?port=") {
        Some((_, port)) => {
            let target = format!("http://inner.corp.example:{port}/page");
            Reply::status(302).with("Location", &target)
        }
        None => Reply::html("<p>the inner page").with("Cache-Control", "max-age=3600"),
    })
    .await
}

#[tokio::test]
async fn a_cached_page_is_not_shown_once_its_host_is_refused() {
    let site = redirecting_site().await;
    let port = site.port;
    let first = format!("first.corp.example:{port}");
    let inner = format!("inner.corp.example:{port}");
    let url = format!("http://{first}/from?port={port}");
    let denied = format!("the entry `{inner}`");
    for (allow, deny, reason) in [
        // The name is denied.
        (vec![&*first, &*inner], vec![&*inner], &*denied),
        // The name is no longer allowed, and its address is not public.
        (vec![&*first], vec![], "it resolves to 127.0.0.1"),
        // The address behind the name is denied.
        (
            vec![&*first, &*inner],
            vec!["127.0.0.0/8"],
            "the entry `127.0.0.0/8`",
        ),
    ] {
        let cache: Arc<dyn WebCache> = Arc::new(Store::in_memory());
        let open = bench(&[&first, &inner], &[], &cache);
        assert!(open.fetch(&url).await.contains("the inner page"));
        let before = site.requests().len();
        assert!(open.fetch(&url).await.contains("the inner page"));
        assert_eq!(
            site.requests().len(),
            before,
            "the second fetch uses the cache"
        );
        let closed = bench(&allow, &deny, &cache);
        let error = closed.error(&url).await;
        assert!(error.contains(reason), "{error}");
        assert!(!error.contains("the inner page"), "{error}");
    }
}

#[tokio::test]
async fn a_page_that_another_process_cached_under_the_same_rules_is_used() {
    let site = redirecting_site().await;
    let host = format!("plain.corp.example:{}", site.port);
    let url = format!("http://{host}/page");
    let cache: Arc<dyn WebCache> = Arc::new(Store::in_memory());
    for _ in 0..2 {
        bench(&[&host], &[], &cache).fetch(&url).await;
    }
    assert_eq!(site.requests().len(), 1);
}

#[tokio::test]
async fn a_page_cached_for_one_user_is_not_shown_to_another() {
    let site = Site::serve(|_| {
        let reply = Reply::html("<p>for one alone").with("Cache-Control", "public, max-age=3600");
        reply.with("Vary", "Accept-Language, Cookie")
    })
    .await;
    let bench = Bench::new(&[&site]);
    for (user, requests) in [("ann", 1), ("bob", 2), ("ann", 2)] {
        let call = bench.call_as(user, json!({ "url": site.url("/") })).await;
        call.unwrap();
        assert_eq!(site.requests().len(), requests, "{user}");
    }
}
