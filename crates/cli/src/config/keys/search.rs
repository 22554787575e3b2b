//! The keys under `search`. A project sets none of them: they decide where queries, and keys, are sent.

use super::{Key, Untrusted};

pub(super) const ORDER: Key = Key {
    name: "search.order",
    help: "the search services in the order in which they are asked; by kind and name when not set",
    field: |settings, _| &mut settings.search.order,
    untrusted: Untrusted::Ignored,
};

pub(super) const KIND: Key = Key {
    name: "search.providers.<id>.kind",
    help: "a search service: `searxng`, `brave`, `tavily` or `kagi`; its name when not set",
    field: |settings, id| &mut settings.search.provider(id).kind,
    untrusted: Untrusted::Ignored,
};

pub(super) const URL: Key = Key {
    name: "search.providers.<id>.url",
    help: "where it is, such as `http://127.0.0.1:8888`; only SearXNG needs it",
    field: |settings, id| &mut settings.search.provider(id).url,
    untrusted: Untrusted::Ignored,
};

pub(super) const API_KEY_ENV: Key = Key {
    name: "search.providers.<id>.apiKeyEnv",
    help: "the environment variable that holds its key, such as `BRAVE_API_KEY`, or `secret:NAME`",
    field: |settings, id| &mut settings.search.provider(id).api_key_env,
    untrusted: Untrusted::Ignored,
};
