//! The guard: checks a destination, resolves it once, and connects only to the checked addresses.

use crate::address::{AddressClass, Permission, classify};
use crate::budget::{Budget, Budgets};
use crate::client::EgressClient;
use crate::destination::{Destination, Host, host_of};
use crate::error::{EgressError, Refusal, RefusalReason};
use crate::limits::EgressLimits;
use crate::local_names::is_local;
use crate::ports::is_other_protocol;
use crate::resolver::{Resolver, SystemResolver};
use crate::rules::EgressRules;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use url::Url;

/// How many addresses of one name to try.
const MAX_ATTEMPTS: usize = 8;
/// How many characters of a URL a refusal quotes.
const MAX_QUOTED: usize = 200;

/// The policy for outbound connections, with the resolver and TLS settings to open them. Clones share the same guard.
#[derive(Debug, Clone)]
pub struct Egress {
    guard: Arc<Guard>,
    client: EgressClient,
    budgets: Budgets,
}

impl Default for Egress {
    /// Creates a guard that allows only public hosts.
    fn default() -> Self {
        Self::new(EgressRules::default(), EgressLimits::default())
    }
}

impl Egress {
    /// Creates a guard with the system's resolver and trusted certificates.
    pub fn new(rules: EgressRules, limits: EgressLimits) -> Self {
        Self::with_resolver(rules, limits, Arc::new(SystemResolver))
    }

    /// Creates a guard with another resolver.
    pub fn with_resolver(
        rules: EgressRules,
        limits: EgressLimits,
        resolver: Arc<dyn Resolver>,
    ) -> Self {
        Self::from_guard(Guard {
            rules,
            limits,
            resolver,
            tls: OnceLock::new(),
            disabled: Vec::new(),
        })
    }

    fn from_guard(guard: Guard) -> Self {
        let budgets = Budgets::new(guard.limits.clone());
        let guard = Arc::new(guard);
        Self {
            client: EgressClient::new(Arc::clone(&guard)),
            guard,
            budgets,
        }
    }

    /// Returns a copy of the guard with other trusted certificates.
    pub fn with_tls(self, config: Arc<rustls::ClientConfig>) -> Self {
        let tls = OnceLock::from(config);
        let (rules, limits) = (self.rules().clone(), self.limits().clone());
        Self::from_guard(Guard {
            rules,
            limits,
            resolver: Arc::clone(&self.guard.resolver),
            tls,
            disabled: self.guard.disabled.clone(),
        })
    }

    /// Returns a copy of the guard without one of its checks, so that the attack tests can show that each check is
    /// needed.
    #[doc(hidden)]
    pub fn without(self, check: Check) -> Self {
        let mut disabled = self.guard.disabled.clone();
        disabled.push(check);
        Self::from_guard(Guard {
            rules: self.rules().clone(),
            limits: self.limits().clone(),
            resolver: Arc::clone(&self.guard.resolver),
            tls: self.guard.tls.clone(),
            disabled,
        })
    }

    /// Checks a URL as far as possible without a DNS lookup.
    pub fn check(&self, url: &Url) -> Result<Destination, Refusal> {
        self.guard.check(url)
    }

    /// Resolves the host once. Refuses the destination if any of its addresses is refused.
    pub async fn resolve(&self, destination: &Destination) -> Result<Vec<SocketAddr>, Refusal> {
        self.guard.resolve(destination).await
    }

    /// Resolves a destination and connects to one of the checked addresses. Counts one request.
    pub async fn connect(
        &self,
        destination: &Destination,
        budget: &Budget,
    ) -> Result<TcpStream, EgressError> {
        self.guard.connect(destination, budget).await
    }

    /// Starts TLS on a connection, with the certificates that this guard trusts.
    pub(crate) async fn secure(
        &self,
        stream: TcpStream,
        destination: &Destination,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, EgressError> {
        self.client.secure(stream, destination).await
    }

    pub fn client(&self) -> &EgressClient {
        &self.client
    }

    /// Returns the per-turn budgets. All tools that share this guard also share its budgets.
    pub fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    pub(crate) fn is_enabled(&self, check: Check) -> bool {
        self.guard.is_enabled(check)
    }

    pub fn rules(&self) -> &EgressRules {
        &self.guard.rules
    }

    pub fn limits(&self) -> &EgressLimits {
        &self.guard.limits
    }
}

/// One of the guard's checks.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Ports of other protocols.
    Ports,
    /// Local names.
    LocalNames,
    /// Literal addresses.
    Literals,
    /// Addresses that a name resolves to.
    ResolvedAddresses,
    /// Addresses that belong to network interfaces of this machine.
    OwnAddresses,
    /// Connecting only to the resolved addresses, without another lookup.
    SingleLookup,
    Redirects,
    /// The list of hosts of a proxy.
    OnlyHosts,
    /// The header and origin to which a secret is bound.
    SecretOrigin,
    /// Placeholders elsewhere in a request.
    SecretPlace,
    /// Echoes of secret values in responses.
    SecretMasks,
    /// Requests for part of a response.
    SecretRange,
}

pub(crate) struct Guard {
    pub rules: EgressRules,
    pub limits: EgressLimits,
    resolver: Arc<dyn Resolver>,
    pub tls: OnceLock<Arc<rustls::ClientConfig>>,
    disabled: Vec<Check>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Guard")
            .field("rules", &self.rules)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Guard {
    pub(crate) fn is_enabled(&self, check: Check) -> bool {
        !self.disabled.contains(&check)
    }

    pub(crate) fn check(&self, url: &Url) -> Result<Destination, Refusal> {
        let refuse = |reason| Err(Refusal::new(quote(url), reason));
        let is_https = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return refuse(RefusalReason::Scheme(other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refuse(RefusalReason::UserInfo);
        }
        let (Some(host), Some(port)) = (host_of(url), url.port_or_known_default()) else {
            return refuse(RefusalReason::BadHost);
        };
        let destination = Destination::new(host, port, is_https);
        match self.refusal_reason(&destination) {
            Some(reason) => Err(Refusal::new(destination.to_string(), reason)),
            None => Ok(destination),
        }
    }

    /// Returns the reason to refuse a host and port, as far as it is known before the lookup.
    fn refusal_reason(&self, destination: &Destination) -> Option<RefusalReason> {
        let (host, port) = (destination.host(), destination.port());
        if let Some(entry) = self.rules.denying(host, port) {
            let entry = entry.to_string();
            return Some(RefusalReason::Denied { entry });
        }
        if is_other_protocol(port)
            && !self.rules.names_port(host, port)
            && self.is_enabled(Check::Ports)
        {
            return Some(RefusalReason::Port(port));
        }
        match host {
            Host::Name(name) => {
                let is_refused = is_local(name) && !self.rules.names(host, port);
                (is_refused && self.is_enabled(Check::LocalNames))
                    .then_some(RefusalReason::LocalName)
            }
            Host::Address(address) if self.is_enabled(Check::Literals) => {
                self.address_refusal_reason(destination, *address)
            }
            Host::Address(_) => None,
        }
    }

    /// Returns the reason to refuse an address of a destination, which is either literal or resolved.
    fn address_refusal_reason(
        &self,
        destination: &Destination,
        address: IpAddr,
    ) -> Option<RefusalReason> {
        let (host, port) = (destination.host(), destination.port());
        if let Some(entry) = self.rules.denying_address(address, port) {
            let entry = entry.to_string();
            return Some(RefusalReason::Denied { entry });
        }
        let mut class = classify(address);
        if class == AddressClass::Public
            && self.is_enabled(Check::OwnAddresses)
            && is_own_address(address)
        {
            class = AddressClass::OwnMachine;
        }
        // A name needs a separate entry even if its address has one. Otherwise an attacker could register a name for
        // the address, and a page under that name would have the same origin as the service behind the address.
        let is_host_named = self.rules.names(host, port);
        let is_permitted = match (class.permission(), host) {
            (Permission::Free, _) => true,
            (Permission::Named, _) | (Permission::ByAddress, Host::Address(_)) => is_host_named,
            (Permission::ByAddress, Host::Name(_)) => {
                is_host_named && self.rules.names_address(address, port)
            }
            (Permission::Never, _) => false,
        };
        (!is_permitted).then_some(RefusalReason::Address { address, class })
    }

    pub(crate) async fn resolve(
        &self,
        destination: &Destination,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let addresses = match destination.host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.lookup(name, destination).await?,
        };
        if self.is_enabled(Check::ResolvedAddresses)
            && matches!(destination.host(), Host::Name(_))
            && let Some(reason) = addresses
                .iter()
                .find_map(|address| self.address_refusal_reason(destination, *address))
        {
            return Err(Refusal::new(destination.to_string(), reason));
        }
        let port = destination.port();
        let sockets = addresses.iter().map(|address| (*address, port).into());
        Ok(sockets.collect())
    }

    async fn lookup(&self, name: &str, destination: &Destination) -> Result<Vec<IpAddr>, Refusal> {
        let limit = self.limits.connect_time;
        let problem = match timeout(limit, self.resolver.lookup(name)).await {
            Ok(Ok(addresses)) if !addresses.is_empty() => return Ok(addresses),
            Ok(Ok(_)) => "the name does not resolve to an address".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", limit.as_secs_f32()),
        };
        let reason = RefusalReason::Unresolved { problem };
        Err(Refusal::new(destination.to_string(), reason))
    }

    pub(crate) async fn connect(
        &self,
        destination: &Destination,
        budget: &Budget,
    ) -> Result<TcpStream, EgressError> {
        budget.take_request(&destination.to_string())?;
        let mut addresses = self.resolve(destination).await?;
        if let Host::Name(name) = destination.host()
            && !self.is_enabled(Check::SingleLookup)
        {
            let again = self.lookup(name, destination).await?;
            let port = destination.port();
            addresses = again.into_iter().map(|ip| (ip, port).into()).collect();
        }
        self.connect_to_one(destination, &addresses).await
    }

    /// Tries the addresses one after the other. Each attempt gets an equal share of the remaining time.
    async fn connect_to_one(
        &self,
        destination: &Destination,
        addresses: &[SocketAddr],
    ) -> Result<TcpStream, EgressError> {
        let limit = self.limits.connect_time;
        let deadline = Instant::now() + limit;
        let attempts = addresses.len().min(MAX_ATTEMPTS);
        let mut last = None;
        for (index, address) in addresses.iter().take(attempts).enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(attempts - index).unwrap_or(1);
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // If this fails, the connection only sends small writes with a delay.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => last = Some(error),
                Err(_) => {}
            }
        }
        let destination = destination.to_string();
        Err(match last {
            Some(source) => EgressError::Unreachable {
                destination,
                source,
            },
            None => EgressError::TimedOut {
                destination,
                action: "accept a connection",
                after: limit,
            },
        })
    }
}

/// Returns whether an address belongs to an interface of this machine, by trying to bind it. A firewall does not block
/// connections from the machine to its own public address, so they could reach local services.
fn is_own_address(address: IpAddr) -> bool {
    let can_bind = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    // On some systems every address can be bound. There this test proves nothing, so the result is false.
    let foreign = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    can_bind(address) && !can_bind(foreign)
}

/// Formats a URL for a refusal: without user, password and query, and shortened.
fn quote(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail for a URL without a host, which cannot contain a user or password.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.set_query(None);
    url.set_fragment(None);
    url.as_str().chars().take(MAX_QUOTED).collect()
}

impl Guard {
    /// Returns the TLS configuration, which is created on first use.
    pub(crate) fn tls(&self) -> io::Result<Arc<rustls::ClientConfig>> {
        if let Some(config) = self.tls.get() {
            return Ok(Arc::clone(config));
        }
        let config = crate::client::system_tls()?;
        Ok(Arc::clone(self.tls.get_or_init(|| config)))
    }
}
