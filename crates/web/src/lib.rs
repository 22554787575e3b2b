//! Web tools: [`search_web`](search_tool) queries a search service, [`search_fetch`](fetch_tool) reads a page.
//!
//! Search services are named in the user's configuration and tried in that order until one responds ([`Providers`]).
//! Pages are fetched through the egress guard, converted to Markdown, and cached as far as their servers permit. All
//! text from outside is untrusted: results say so and name their source. Links in results and pages are added to the
//! session's [`SeenLinks`](lango_net::SeenLinks), so agents may open them without asking the user.

mod fetch;
mod freshness;
mod page;
mod provider;
mod search;
mod show;

pub use fetch::{FetchParts, fetch_tool};
pub use provider::{ProviderKind, Providers, SearchProvider};
pub use search::{SearchParts, search_tool};
