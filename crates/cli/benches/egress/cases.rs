//! The URLs to open: the list of hostile URLs from the guard's own tests, redirects of every kind, and names with
//! hostile addresses.

use crate::namespaces::OWN_ADDRESS;
use crate::pages::{attacking, redirecting};
use crate::test_network::{Hit, HitKind, PUBLIC};
use crate::tools::{COMMAND_SOCKETS, WORKSPACE_PAGE};
use crate::{kinds, names};
use lango_net::{AddressClass, Check, classify};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

const LIST: &str = include_str!("../../../net/tests/it/hostile_urls.txt");

/// A URL to open, with its expected result.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub url: String,
    pub expected: Expected,
    /// The kinds of attack, as named by [`kinds`].
    pub kinds: Vec<String>,
}

/// What a URL may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Nothing.
    Refused,
    /// Only public addresses: the first request is allowed, what follows is not.
    PublicOnly,
    /// Public addresses, and a page on loopback that the rules allow.
    OwnPage,
    /// A public address that must be reached. Otherwise the other cases prove nothing.
    Fetched,
}

impl Case {
    /// Creates a case whose URL must not reach anything.
    pub(crate) fn refused(url: &str) -> Self {
        Self::new(url.to_owned(), Expected::Refused)
    }

    fn public_only(url: String) -> Self {
        Self::new(url, Expected::PublicOnly)
    }

    fn fetched(url: String) -> Self {
        Self::new(url, Expected::Fetched)
    }

    fn new(url: String, expected: Expected) -> Self {
        let kinds = Vec::new();
        Self {
            url,
            expected,
            kinds,
        }
    }

    fn with_kinds<K: Into<String>>(mut self, kinds: impl IntoIterator<Item = K>) -> Self {
        self.kinds.extend(kinds.into_iter().map(Into::into));
        self
    }

    /// Returns whether the URL must reach something.
    pub(crate) fn must_be_fetched(&self) -> bool {
        self.expected == Expected::Fetched
    }

    /// Returns the URL for another attempt, with a new number in names that change.
    pub(crate) fn fresh_url(&self) -> String {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.url.replace(names::FRESH, &format!("n{number}"))
    }

    /// Returns whether the guard should have prevented a hit.
    pub(crate) fn is_violated_by(&self, hit: &Hit) -> bool {
        let is_public =
            hit.kind == HitKind::Network && classify(hit.address) == AddressClass::Public;
        let is_own_page =
            hit.kind == HitKind::Local && hit.address.is_loopback() && hit.port == OWN_PAGE_PORT;
        match self.expected {
            Expected::Refused => true,
            Expected::PublicOnly | Expected::Fetched => !is_public,
            Expected::OwnPage => !is_public && !is_own_page,
        }
    }
}

/// The port of the attack pages that this machine serves.
const OWN_PAGE_PORT: u16 = 80;

/// Addresses of each refused class to which a connection is possible.
const TARGETS: [&str; 18] = [
    "127.0.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "100.64.0.1",
    "198.18.0.1",
    "240.0.0.1",
    "0.0.0.0",
    "::1",
    "fd00:ec2::254",
    "fc00::1",
    "fec0::1",
    "64:ff9b::a00:1",
    "2002:a00:1::1",
    "::ffff:10.0.0.1",
];

/// Forms of redirects. Only browsers follow the last four.
const FORMS: [&str; 9] = [
    "301", "302", "303", "307", "308", "meta", "script", "refresh", "frame",
];

fn literal(address: &str) -> String {
    match address.parse::<IpAddr>().unwrap() {
        IpAddr::V4(address) => format!("http://{address}/"),
        IpAddr::V6(address) => format!("http://[{address}]/"),
    }
}

/// Returns all cases.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = controls();
    cases.extend(listed());
    cases.extend(resolving());
    cases.extend(changing());
    cases.extend(redirects());
    cases.extend(local_names());
    cases.extend(ports());
    cases.push(own_address());
    cases
}

/// Returns the cases of which some must get through without a check.
pub(crate) fn for_check(check: Check) -> Vec<Case> {
    match check {
        Check::Literals => listed(),
        Check::ResolvedAddresses => resolving(),
        Check::SingleLookup => changing(),
        Check::Redirects => redirects(),
        Check::LocalNames => local_names(),
        Check::Ports => ports(),
        Check::OwnAddresses => vec![own_address()],
        Check::OnlyHosts => Vec::new(),
        // The checks of secrets are tested with the proxy.
        Check::SecretOrigin | Check::SecretPlace | Check::SecretMasks | Check::SecretRange => {
            Vec::new()
        }
    }
}

/// Returns the URLs that must be fetched.
fn controls() -> Vec<Case> {
    let plain = format!("http://{PUBLIC}/");
    [
        plain.clone(),
        "http://public.example/".to_owned(),
        "http://[2606:2800:220:1::1]/".to_owned(),
        format!("http://{}/", names::with_address("2606:2800:220:1::1")),
        format!("http://[::ffff:{PUBLIC}]:8080/"),
        "http://[64:ff9b::5db8:d822]/".to_owned(),
        redirecting("302", &plain),
        redirecting("308", "http://public.example:8080/"),
    ]
    .map(Case::fetched)
    .into()
}

/// Returns the refused URLs from the list of the guard's tests. An entry with resolver answers becomes a name with
/// those addresses.
fn listed() -> Vec<Case> {
    let mut cases = Vec::new();
    for line in LIST.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        if columns[0] == "public" {
            continue;
        }
        match columns
            .get(2)
            .map(|answers| answers.split(',').collect::<Vec<_>>())
        {
            None => {
                let url = unescape(columns.get(1).unwrap_or(&""));
                cases
                    .push(Case::refused(&url).with_kinds(kinds::from_list_entry(columns[0], &url)));
            }
            Some(answers) => {
                let name = match answers.as_slice() {
                    [one] => names::with_address(one),
                    [first, .., last] => names::with_addresses(first, last),
                    [] => continue,
                };
                let case = Case::refused(&format!("http://{name}/"));
                let kind = format!("name, as one of {}", answers.len());
                cases.push(case.with_kinds([kind]));
            }
        }
    }
    cases
}

fn unescape(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        plain.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        plain.push_str(rest);
    }
    plain
}

/// Returns names with refused addresses, alone and together with a public one.
fn resolving() -> Vec<Case> {
    let cases = TARGETS.iter().flat_map(|target| {
        [
            (names::with_address(target), "name"),
            (names::with_addresses(PUBLIC, target), "name, public first"),
            (names::with_addresses(target, PUBLIC), "name, public last"),
        ]
    });
    cases
        .map(|(name, kind)| Case::refused(&format!("http://{name}/")).with_kinds([kind]))
        .collect()
}

/// Returns names whose address is public at the first lookup and refused at the next, also across a redirect.
fn changing() -> Vec<Case> {
    let secret: String = "/secret"
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let targets = TARGETS.iter().filter(|target| !target.contains(':'));
    let cases = targets.flat_map(|target| {
        let name = names::changing(PUBLIC, target);
        [
            (format!("http://{name}/"), "changing name"),
            (
                format!("http://{name}/to/302/{secret}"),
                "changing name, redirected",
            ),
        ]
    });
    cases
        .map(|(url, kind)| Case::public_only(url).with_kinds([kind]))
        .collect()
}

fn redirects() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in FORMS {
        let mut add = |target: &str, kind: String| {
            let case = Case::public_only(redirecting(form, target));
            cases.push(case.with_kinds([format!("redirect by {form}"), kind]));
        };
        for target in TARGETS {
            add(&literal(target), "redirect to an address".to_owned());
            let name = format!("http://{}/", names::with_address(target));
            add(&name, "redirect to a name".to_owned());
        }
        for target in [
            "file:///etc/passwd",
            "gopher://127.0.0.1:6379/_x",
            "http://localhost/",
            "//10.0.0.1/",
            "http://2130706433/",
            "\\\\10.0.0.1\\",
        ] {
            add(target, format!("redirect to {target}"));
        }
        let metadata = "http://169.254.169.254/latest/";
        add(&redirecting("302", metadata), "redirect twice".to_owned());
    }
    cases
}

/// Returns local names that the name server resolves to public addresses.
fn local_names() -> Vec<Case> {
    [
        "printer.local",
        "metadata.google.internal",
        "x.test",
        "db.corp",
        "kubernetes.default.svc",
        "nas.lan",
    ]
    .map(|name| Case::refused(&format!("http://{name}/")).with_kinds(["local name"]))
    .into()
}

fn ports() -> Vec<Case> {
    // Redis is first and represents the kind in a short run: Chromium itself refuses the others.
    [6379, 22, 25]
        .map(|port| Case::refused(&format!("http://{PUBLIC}:{port}/")).with_kinds(["port"]))
        .into()
}

fn own_address() -> Case {
    Case::refused(&format!("http://{OWN_ADDRESS}/")).with_kinds(["own address"])
}

/// Returns the targets of attack pages: all refused addresses, or their names.
fn hosts(by_name: bool) -> impl Iterator<Item = String> {
    TARGETS.iter().map(move |target| {
        if by_name {
            names::with_address(target)
        } else {
            let url = literal(target);
            url.trim_start_matches("http://")
                .trim_end_matches('/')
                .to_owned()
        }
    })
}

/// Number of hosts that one page attacks.
const HOSTS_PER_PAGE: usize = 3;

/// Returns the only target of a short run. Each target costs the browser dozens of frames, windows and workers.
pub(crate) fn one_host(by_name: bool) -> String {
    hosts(by_name).nth(1).unwrap()
}

/// Returns a page that attacks one host.
pub(crate) fn attack_page(by_name: bool) -> Case {
    Case::public_only(attacking(&one_host(by_name)))
}

/// Returns pages that together attack every refused address.
pub(crate) fn attack_pages(by_name: bool) -> Vec<Case> {
    let hosts: Vec<String> = hosts(by_name).collect();
    let pages = hosts.chunks(HOSTS_PER_PAGE);
    pages
        .map(|hosts| Case::public_only(attacking(&hosts.join(","))))
        .collect()
}

/// Returns the attack page on localhost. This is a secure context, which service workers and others need.
pub(crate) fn secure_page() -> Case {
    let url = attacking(&one_host(false)).replace(PUBLIC, "localhost");
    Case::new(url, Expected::OwnPage)
}

/// Returns the attack page as a file of the workspace, which must not reach anything.
pub(crate) fn workspace_page() -> Case {
    Case::refused(WORKSPACE_PAGE)
}

/// Returns the case of a command that opens sockets itself.
pub(crate) fn sockets() -> Case {
    Case::refused(COMMAND_SOCKETS)
}

/// Returns one refused address of each class.
pub(crate) fn targets() -> impl Iterator<Item = &'static str> {
    TARGETS.into_iter()
}
