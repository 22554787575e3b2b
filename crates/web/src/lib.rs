//! The web for agents: [`search_web`](search_tool) asks a search service, [`search_fetch`](fetch_tool) reads a page.
//!
//! Search services are named in the user's configuration and asked in its order until one answers ([`Providers`]). Pages are
//! fetched through the egress guard, turned into Markdown and cached as their servers permit. Whatever comes from outside is
//! untrusted: results carry that label and name their source. Addresses that results and pages contain become known to the
//! session ([`SeenLinks`](lango_net::SeenLinks)), so that opening them needs no question.

mod fetch;
mod freshness;
mod page;
mod provider;
mod search;
mod show;

pub use fetch::{FetchParts, fetch_tool};
pub use provider::{ProviderKind, Providers, SearchProvider, Secrets};
pub use search::{SearchParts, search_tool};
