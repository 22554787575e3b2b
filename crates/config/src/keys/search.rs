//! The keys under `search`. A project may not set them: they decide where queries and API keys are sent.

use super::{Key, UntrustedPolicy};

pub(super) const ORDER: Key = Key {
    name: "search.order",
    help: "the order in which search services are tried; by kind and name when not set",
    field: |settings, _| &mut settings.search.order,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const KIND: Key = Key {
    name: "search.providers.<id>.kind",
    help: "the kind of a search service: `searxng`, `brave`, `tavily` or `kagi`; derived from its name when not set",
    field: |settings, id| &mut settings.search.provider(id).kind,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const URL: Key = Key {
    name: "search.providers.<id>.url",
    help: "the address of the service, such as `http://127.0.0.1:8888`; only SearXNG needs it",
    field: |settings, id| &mut settings.search.provider(id).url,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const API_KEY_ENV: Key = Key {
    name: "search.providers.<id>.apiKeyEnv",
    help: "the environment variable with its API key, such as `BRAVE_API_KEY`, or `secret:NAME`",
    field: |settings, id| &mut settings.search.provider(id).api_key_env,
    untrusted: UntrustedPolicy::Ignored,
};
