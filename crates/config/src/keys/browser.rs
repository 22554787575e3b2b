//! The keys under `browser`. A project may turn the browser off and nothing else: it must not choose which program
//! runs or where queries are sent.

use super::{Key, UntrustedPolicy};

pub(super) const ENABLED: Key = Key {
    name: "browser.enabled",
    help: "whether agents have a browser: `true`, `false`, or `auto` (only if one is installed)",
    field: |settings, _| &mut settings.browser.enabled,
    untrusted: UntrustedPolicy::OnlyLower(|settings| settings.browser.enabled as u64),
};

pub(super) const PATH: Key = Key {
    name: "browser.path",
    help: "the executable of Chromium, Chrome or Edge; detected when not set",
    field: |settings, _| &mut settings.browser.path,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const IDLE_TIME: Key = Key {
    name: "browser.idleTime",
    help: "how long a session's browser stays open without a call",
    field: |settings, _| &mut settings.browser.idle_time,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const SEARCH_URL: Key = Key {
    name: "browser.searchUrl",
    help: "the search page of `browser_search`, with `{query}` in it; your SearXNG or DuckDuckGo when not set",
    field: |settings, _| &mut settings.browser.search_url,
    untrusted: UntrustedPolicy::Ignored,
};
