//! The egress guard: one policy for every outbound connection that a model can influence.
//!
//! [`Egress::check`] judges a URL before anything is resolved: scheme, spelling of the host, port, lists and literal
//! addresses. [`Egress::resolve`] looks a name up once and refuses it if any of its addresses is refused, and
//! [`Egress::connect`] opens a connection to one of exactly those addresses, so that a name cannot change its mind between
//! check and use. [`EgressClient`] and [`Proxy`] open connections in no other way.
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
mod names;
mod ports;
mod proxy;
mod resolver;
mod rules;
mod seen_links;
mod tls_error;

pub use address::{AddressClass, Permission, classify};
pub use budget::{Budget, BudgetUsage, Budgets};
pub use client::{EgressClient, Fetched, Outgoing};
pub use destination::{Destination, Host};
pub use error::{EgressError, Reason, Refusal};
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
pub use url::Url;
