//! The egress guard: one policy for every outbound connection that a model can influence.
//!
//! [`Egress::check`] checks a URL before any DNS lookup: its scheme, host, port and literal address, and the allow and
//! deny lists. [`Egress::resolve`] looks a name up once, and refuses it if any of its addresses is refused.
//! [`Egress::connect`] connects only to one of those addresses, so a name cannot resolve to another address between
//! check and use. [`EgressClient`] and [`Proxy`] open all their connections this way.
//!
//! ```
//! use lango_net::{Egress, EgressLimits, EgressRules, Url};
//!
//! let egress = Egress::new(EgressRules::default(), EgressLimits::default());
//! assert!(egress.check(&Url::parse("https://example.com/").unwrap()).is_ok());
//! let refusal = egress.check(&Url::parse("http://0x7f.1/").unwrap()).unwrap_err();
//! assert!(refusal.to_string().contains("`127.0.0.1:80` to `egress.allow`"));
//! ```

mod address;
mod budget;
mod client;
mod destination;
mod error;
mod guard;
mod host_pattern;
mod limits;
mod local_names;
mod ports;
mod proxy;
mod resolver;
mod rules;
mod seen_links;
mod service;
mod tls_error;

pub use address::{AddressClass, Permission, classify};
pub use budget::{Budget, BudgetUsage, Budgets};
pub use client::{EgressClient, FetchedResponse, OutgoingRequest};
pub use destination::{Destination, Host};
pub use error::{EgressError, Refusal, RefusalReason};
#[doc(hidden)]
pub use guard::Check;
pub use guard::Egress;
pub use host_pattern::{HostPattern, HostPatternError};
pub use hyper::header::{self, HeaderMap, HeaderValue};
pub use limits::EgressLimits;
pub use proxy::{
    Credentials, HostList, ProgramCredentials, Proxy, ProxyHandle, ProxyOptions, SecretAccess,
};
pub use resolver::{Resolver, SystemResolver};
pub use rules::EgressRules;
pub use seen_links::SeenLinks;
pub use service::{
    BodyError, BodyLimits, ClientOptions, EventTooLong, PlainHttp, SseEvent, SseParser,
    UnencryptedCredential, backoff, is_plain_body, is_this_machine, next_chunk, read_body,
    redacted_url, retry_after, root_cause, service_client,
};
pub use url::Url;
