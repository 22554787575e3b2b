//! What is tried: the list of hostile URLs that the guard's own tests have, redirects of every kind, and names that lie.

use crate::namespaces::OWN_ADDRESS;
use crate::pages::{attacking, redirecting};
use crate::tools::{COMMAND_SOCKETS, WORKSPACE_PAGE};
use crate::world::{Hit, HitKind, PUBLIC};
use crate::{kinds, names};
use lango_net::{AddressClass, Check, classify};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

const LIST: &str = include_str!("../../../net/tests/it/hostile_urls.txt");

/// One attempt.
#[derive(Debug, Clone)]
pub struct Case {
    /// The URL.
    pub url: String,
    /// What may be reached by it.
    pub expected: Expected,
    /// What it tries, in the words of [`kinds`].
    pub kinds: Vec<String>,
}

/// What a URL may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Nothing at all.
    Refused,
    /// Public addresses only: the first step is allowed, what follows is not.
    PublicOnly,
    /// A page on this machine's loopback that the rules allow, and public addresses.
    OwnPage,
    /// A public address, which must be reached: otherwise the attempts prove nothing.
    Fetched,
}

impl Case {
    /// A URL that may reach nothing.
    pub fn refused(url: &str) -> Self {
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

    fn of_kinds<K: Into<String>>(mut self, kinds: impl IntoIterator<Item = K>) -> Self {
        self.kinds.extend(kinds.into_iter().map(Into::into));
        self
    }

    /// Whether it has to reach something.
    pub fn must_be_fetched(&self) -> bool {
        self.expected == Expected::Fetched
    }

    /// The URL for one more attempt.
    pub fn fresh_url(&self) -> String {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        self.url.replace(names::FRESH, &format!("n{number}"))
    }

    /// Whether a connection is one that the guard should have prevented.
    pub fn is_violated_by(&self, hit: &Hit) -> bool {
        let is_public = hit.kind == HitKind::World && classify(hit.address) == AddressClass::Public;
        let is_own_page =
            hit.kind == HitKind::Here && hit.address.is_loopback() && hit.port == OWN_PAGE_PORT;
        match self.expected {
            Expected::Refused => true,
            Expected::PublicOnly | Expected::Fetched => !is_public,
            Expected::OwnPage => !is_public && !is_own_page,
        }
    }
}

/// The port of the attack pages that this machine serves.
const OWN_PAGE_PORT: u16 = 80;

/// Addresses of each kind that is refused, and that a connection can be made to.
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

/// Ways to lead a client elsewhere. The last four are followed by browsers only.
const FORMS: [&str; 9] = [
    "301", "302", "303", "307", "308", "meta", "script", "refresh", "frame",
];

fn literal(address: &str) -> String {
    match address.parse::<IpAddr>().unwrap() {
        IpAddr::V4(address) => format!("http://{address}/"),
        IpAddr::V6(address) => format!("http://[{address}]/"),
    }
}

/// All cases.
pub fn all() -> Vec<Case> {
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

/// The cases that should get through without a check.
pub fn for_check(check: Check) -> Vec<Case> {
    match check {
        Check::Literals => listed(),
        Check::ResolvedAddresses => resolving(),
        Check::SingleLookup => changing(),
        Check::Redirects => redirects(),
        Check::LocalNames => local_names(),
        Check::Ports => ports(),
        Check::OwnAddresses => vec![own_address()],
        Check::OnlyHosts => Vec::new(),
        // Those about secrets have ways of their own, in the tests of the proxy.
        Check::SecretOrigin | Check::SecretPlace | Check::SecretMasks | Check::SecretRange => {
            Vec::new()
        }
    }
}

/// What must work.
fn controls() -> Vec<Case> {
    let plain = format!("http://{PUBLIC}/");
    [
        plain.clone(),
        "http://public.example/".to_owned(),
        "http://[2606:2800:220:1::1]/".to_owned(),
        format!("http://{}/", names::of("2606:2800:220:1::1")),
        format!("http://[::ffff:{PUBLIC}]:8080/"),
        "http://[64:ff9b::5db8:d822]/".to_owned(),
        redirecting("302", &plain),
        redirecting("308", "http://public.example:8080/"),
    ]
    .map(Case::fetched)
    .into()
}

/// The list of the guard's tests, as far as it is refused. Where it gives a resolver's answers, a name with those answers.
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
                cases.push(Case::refused(&url).of_kinds(kinds::of_listed(columns[0], &url)));
            }
            Some(answers) => {
                let name = match answers.as_slice() {
                    [one] => names::of(one),
                    [first, .., last] => names::of_both(first, last),
                    [] => continue,
                };
                let case = Case::refused(&format!("http://{name}/"));
                let kind = format!("name, as one of {}", answers.len());
                cases.push(case.of_kinds([kind]));
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

/// Names with refused addresses, alone and beside a public one.
fn resolving() -> Vec<Case> {
    let cases = TARGETS.iter().flat_map(|target| {
        [
            (names::of(target), "name"),
            (names::of_both(PUBLIC, target), "name, public first"),
            (names::of_both(target, PUBLIC), "name, public last"),
        ]
    });
    cases
        .map(|(name, kind)| Case::refused(&format!("http://{name}/")).of_kinds([kind]))
        .collect()
}

/// Names that are public when they are checked and refused when they are used, and such that change between two requests.
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
        .map(|(url, kind)| Case::public_only(url).of_kinds([kind]))
        .collect()
}

fn redirects() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in FORMS {
        let mut add = |target: &str, kind: String| {
            let case = Case::public_only(redirecting(form, target));
            cases.push(case.of_kinds([format!("redirect by {form}"), kind]));
        };
        for target in TARGETS {
            add(&literal(target), "redirect to an address".to_owned());
            let name = format!("http://{}/", names::of(target));
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

/// Local names that the name server gives public addresses.
fn local_names() -> Vec<Case> {
    [
        "printer.local",
        "metadata.google.internal",
        "x.test",
        "db.corp",
        "kubernetes.default.svc",
        "nas.lan",
    ]
    .map(|name| Case::refused(&format!("http://{name}/")).of_kinds(["local name"]))
    .into()
}

fn ports() -> Vec<Case> {
    // The first one stands for its kind, and Chromium itself refuses the others.
    [6379, 22, 25]
        .map(|port| Case::refused(&format!("http://{PUBLIC}:{port}/")).of_kinds(["port"]))
        .into()
}

fn own_address() -> Case {
    Case::refused(&format!("http://{OWN_ADDRESS}/")).of_kinds(["own address"])
}

/// The hosts that attack pages attack: every refused address, or its name.
fn hosts(by_name: bool) -> impl Iterator<Item = String> {
    TARGETS.iter().map(move |target| {
        if by_name {
            names::of(target)
        } else {
            let url = literal(target);
            url.trim_start_matches("http://")
                .trim_end_matches('/')
                .to_owned()
        }
    })
}

/// Hosts that one page attacks.
const HOSTS_OF_A_PAGE: usize = 3;

/// The host of the one attack page of a short run: each costs the browser dozens of frames, windows and workers.
pub fn one_host(by_name: bool) -> String {
    hosts(by_name).nth(1).unwrap()
}

/// A page that attacks one host from inside.
pub fn attack_page(by_name: bool) -> Case {
    Case::public_only(attacking(&one_host(by_name)))
}

/// Pages that attack from inside: together they attack every refused address.
pub fn attack_pages(by_name: bool) -> Vec<Case> {
    let hosts: Vec<String> = hosts(by_name).collect();
    let pages = hosts.chunks(HOSTS_OF_A_PAGE);
    pages
        .map(|hosts| Case::public_only(attacking(&hosts.join(","))))
        .collect()
}

/// The attack page on this machine: its origin counts as secure, so that it has service workers and the like.
pub fn secure_page() -> Case {
    let url = attacking(&one_host(false)).replace(PUBLIC, "localhost");
    Case::new(url, Expected::OwnPage)
}

/// The attack page as a file of the workspace: it reaches nothing at all.
pub fn workspace_page() -> Case {
    Case::refused(WORKSPACE_PAGE)
}

/// The sockets of a command.
pub fn sockets() -> Case {
    Case::refused(COMMAND_SOCKETS)
}

/// The refused addresses.
pub fn targets() -> impl Iterator<Item = &'static str> {
    TARGETS.into_iter()
}
