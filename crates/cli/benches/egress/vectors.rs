//! The vectors by which a page can contact a host. Each one must arrive when nothing blocks it, or the run fails: a
//! vector that never arrives tests nothing.

use crate::test_network::{Hit, HitKind};
use lango_net::{AddressClass, classify};
use std::collections::BTreeSet;

/// The vectors of the attack page. They are recognized by their names in request paths, or by their ports.
const VECTORS: &str = "audio beacon blob-frame blob-import blob-window candidate css-background css-import css-list data-frame \
    dns-prefetch download embed events fetch fetch-307 fetch-keepalive fetch-local fetch-opaque fetch-post font \
    font-face form frame-301 frame-302 frame-307 frame-308 frame-meta frame-refresh frame-script icon iframe \
    iframe-tls image-302 img input javascript-frame manifest module modulepreload names-over-https object ping \
    poster preconnect prefetch preload rules-prefetch rules-prerender script service-fetch service-import \
    service-socket shared-fetch shared-import shared-socket shared-xhr socket socket-tls srcdoc srcset stun \
    stylesheet svg-image transport turn-tcp turn-udp video window worker-fetch worker-import worker-socket \
    worker-xhr xhr";

/// Vectors that Chromium does not have, with the reason. They are not tried.
const IMPOSSIBLE: [(&str, &str); 3] = [
    (
        "view-source: in a window",
        "Chromium loads it only from the address bar; browser_navigate refuses the scheme",
    ),
    (
        "link rel=prerender",
        "Chromium ignores it since speculation rules replaced it",
    ),
    (
        "speculation rules, prerender of another site",
        "Chromium prerenders only the page's own site; images on such a page are tried as rules-prerender",
    ),
];

/// Returns the vector of a hit without a path, by its port.
pub(crate) fn from_hit(hit: &Hit) -> Option<&'static str> {
    let is_public = classify(hit.address) == AddressClass::Public;
    match (hit.kind, hit.port) {
        (HitKind::Lookup, _) => Some("dns-prefetch"),
        (HitKind::Datagram, 443) => Some("transport"),
        (HitKind::Datagram, 3478) => Some("stun"),
        (HitKind::Datagram, 5349) => Some("turn-udp"),
        (HitKind::Datagram, 19302) => Some("candidate"),
        (HitKind::Local | HitKind::Network, _) if is_public => None,
        (HitKind::Local | HitKind::Network, 443) => Some("iframe-tls"),
        (HitKind::Local | HitKind::Network, 8443) => Some("socket-tls"),
        (HitKind::Local | HitKind::Network, 8444) => Some("names-over-https"),
        (HitKind::Local | HitKind::Network, 8445) => Some("rules-prefetch"),
        (HitKind::Local | HitKind::Network, 8080) => Some("preconnect"),
        (HitKind::Local | HitKind::Network, 3000) => Some("turn-tcp"),
        _ => None,
    }
}

/// The vectors that arrived in each kind of run.
#[derive(Default)]
pub(crate) struct Arrivals {
    /// In lango's browser with all checks of the guard.
    pub guarded: BTreeSet<String>,
    /// In lango's browser without the checks of addresses.
    pub without_guard: BTreeSet<String>,
    /// In a browser outside of the sandbox.
    pub without_sandbox: BTreeSet<String>,
}

impl Arrivals {
    /// Prints the table, and returns the failures: vectors that got past the guard or were not tested.
    pub(crate) fn report(&self) -> Vec<String> {
        let mark = |arrived: &BTreeSet<String>, vector: &str| {
            if arrived.contains(vector) {
                "arrived"
            } else {
                "-"
            }
        };
        println!(
            "\n{:<18} {:<12} {:<12} {:<12}",
            "vector", "no sandbox", "guard off", "guarded"
        );
        let mut failures = Vec::new();
        for vector in VECTORS.split(' ') {
            println!(
                "{vector:<18} {:<12} {:<12} {:<12}",
                mark(&self.without_sandbox, vector),
                mark(&self.without_guard, vector),
                mark(&self.guarded, vector)
            );
            if !self.without_guard.contains(vector) && !self.without_sandbox.contains(vector) {
                failures.push(format!(
                    "{vector}: it arrives in no run, so blocking it is not tested"
                ));
            }
            if self.guarded.contains(vector) {
                failures.push(format!("{vector}: it got past the guard"));
            }
        }
        for (vector, reason) in IMPOSSIBLE {
            println!("not tried: {vector}: {reason}");
        }
        let all = [&self.guarded, &self.without_guard, &self.without_sandbox];
        for vector in all
            .into_iter()
            .flatten()
            .filter(|vector| VECTORS.split(' ').all(|known| known != vector.as_str()))
        {
            failures.push(format!("{vector}: it is not in the list of vectors"));
        }
        failures
    }
}
