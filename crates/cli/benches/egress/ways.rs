//! The ways in which a page can contact a host. Each must arrive where nothing holds it, or the run fails: a way that never
//! arrives tests nothing.

use crate::world::{Hit, HitKind};
use lango_net::{AddressClass, classify};
use std::collections::BTreeSet;

/// The ways of the attack page. Its requests carry these names in their paths, the others are known by their ports.
const WAYS: &str = "audio beacon blob-frame blob-import blob-window candidate css-background css-import css-list data-frame \
    dns-prefetch download embed events fetch fetch-307 fetch-keepalive fetch-local fetch-opaque fetch-post font \
    font-face form frame-301 frame-302 frame-307 frame-308 frame-meta frame-refresh frame-script icon iframe \
    iframe-tls image-302 img input javascript-frame manifest module modulepreload names-over-https object ping \
    poster preconnect prefetch preload rules-prefetch rules-prerender script service-fetch service-import \
    service-socket shared-fetch shared-import shared-socket shared-xhr socket socket-tls srcdoc srcset stun \
    stylesheet svg-image transport turn-tcp turn-udp video window worker-fetch worker-import worker-socket \
    worker-xhr xhr";

/// Ways that Chromium does not have, and why. They are not tried.
const IMPOSSIBLE: [(&str, &str); 3] = [
    (
        "view-source: in a window",
        "Chromium loads it for the address bar only; browser_navigate refuses the scheme",
    ),
    (
        "link rel=prerender",
        "Chromium ignores it since speculation rules replaced it",
    ),
    (
        "speculation rules, prerender of another site",
        "Chromium prerenders the page's own site only; its images are tried as rules-prerender",
    ),
];

/// The way by which something arrived that has no path, by its port.
pub fn of_hit(hit: &Hit) -> Option<&'static str> {
    let is_public = classify(hit.address) == AddressClass::Public;
    match (hit.kind, hit.port) {
        (HitKind::Lookup, _) => Some("dns-prefetch"),
        (HitKind::Datagram, 443) => Some("transport"),
        (HitKind::Datagram, 3478) => Some("stun"),
        (HitKind::Datagram, 5349) => Some("turn-udp"),
        (HitKind::Datagram, 19302) => Some("candidate"),
        (HitKind::Here | HitKind::World, _) if is_public => None,
        (HitKind::Here | HitKind::World, 443) => Some("iframe-tls"),
        (HitKind::Here | HitKind::World, 8443) => Some("socket-tls"),
        (HitKind::Here | HitKind::World, 8444) => Some("names-over-https"),
        (HitKind::Here | HitKind::World, 8445) => Some("rules-prefetch"),
        (HitKind::Here | HitKind::World, 8080) => Some("preconnect"),
        (HitKind::Here | HitKind::World, 3000) => Some("turn-tcp"),
        _ => None,
    }
}

/// Which ways arrived in which run.
#[derive(Default)]
pub struct Arrivals {
    /// Behind the guard.
    pub guarded: BTreeSet<String>,
    /// In lango's browser, with the checks of addresses off.
    pub without_guard: BTreeSet<String>,
    /// In a browser with the network of the run.
    pub without_sandbox: BTreeSet<String>,
}

impl Arrivals {
    /// Prints the table, and says which ways are not tested.
    pub fn report(&self) -> Vec<String> {
        let mark = |arrived: &BTreeSet<String>, way: &str| {
            if arrived.contains(way) {
                "arrived"
            } else {
                "-"
            }
        };
        println!(
            "\n{:<18} {:<12} {:<12} {:<12}",
            "way of a page", "no sandbox", "guard off", "guarded"
        );
        let mut failures = Vec::new();
        for way in WAYS.split(' ') {
            println!(
                "{way:<18} {:<12} {:<12} {:<12}",
                mark(&self.without_sandbox, way),
                mark(&self.without_guard, way),
                mark(&self.guarded, way)
            );
            if !self.without_guard.contains(way) && !self.without_sandbox.contains(way) {
                failures.push(format!(
                    "{way}: it arrives in no run, so it is not tested that it is held"
                ));
            }
            if self.guarded.contains(way) {
                failures.push(format!("{way}: it arrived behind the guard"));
            }
        }
        for (way, reason) in IMPOSSIBLE {
            println!("not tried: {way}: {reason}");
        }
        let all = [&self.guarded, &self.without_guard, &self.without_sandbox];
        for way in all
            .into_iter()
            .flatten()
            .filter(|way| WAYS.split(' ').all(|known| known != way.as_str()))
        {
            failures.push(format!("{way}: it is not in the list of ways"));
        }
        failures
    }
}
