//! Decides which URLs a card may lead to. The user chose the host of the card's URL. Any other host, named by a card or
//! a redirect, is untrusted and must pass the egress guard, like every URL that a model can choose.

use lango_net::{Egress, is_this_machine, redacted_url};
use reqwest::Url;
use std::net::{IpAddr, SocketAddr};

/// How to connect to a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// The host is the configured one. Any address is allowed.
    Configured,
    /// Another host. Only the addresses that the guard checked are allowed.
    Checked(Vec<SocketAddr>),
}

/// Decides whether the URL `from` may lead to the URL `to`, and how to connect to it. The error says why not.
/// `configured` is the URL of the card in the user's configuration.
pub(crate) async fn admit(
    configured: &Url,
    from: &Url,
    to: &Url,
    egress: &Egress,
) -> Result<Route, String> {
    if !matches!(to.scheme(), "http" | "https") {
        return Err(format!("`{}` is neither http nor https", to.scheme()));
    }
    if !to.username().is_empty() || to.password().is_some() {
        return Err("it contains a user name or password".to_owned());
    }
    if from.scheme() == "https" && to.scheme() == "http" && !names_this_machine(from) {
        return Err("it leads from https to http".to_owned());
    }
    // An untrusted host must not lead back to the user's host either, which may be a private one.
    if is_same_host(configured, from) && is_same_host(configured, to) {
        return Ok(Route::Configured);
    }
    let destination = egress.check(to).map_err(|refusal| refusal.to_string())?;
    let addresses = egress.resolve(&destination).await;
    let addresses = addresses.map_err(|refusal| refusal.to_string())?;
    Ok(Route::Checked(addresses))
}

/// Formats a URL for display: without its query, which may contain a key, and without user name and password.
pub(crate) fn display_url(url: &Url) -> String {
    super::sanitize::one_line(redacted_url(url).as_str(), 200)
}

/// Returns whether two URLs have the same host. All names of this machine count as the same host.
fn is_same_host(one: &Url, other: &Url) -> bool {
    host(one) == host(other) || names_this_machine(one) && names_this_machine(other)
}

/// Returns whether a URL is meant for this machine. Unlike [`is_this_machine`], which decides about credentials, this accepts
/// the unspecified address, which many servers put into their cards, and names below `.localhost`.
fn names_this_machine(url: &Url) -> bool {
    let host = host(url);
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    let is_unspecified = literal.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
    is_this_machine(url) || is_unspecified || host.ends_with(".localhost")
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    host.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lango_core::BoxFuture;
    use lango_net::{EgressLimits, EgressRules, Resolver};
    use std::io;
    use std::sync::Arc;

    /// A resolver that knows public names, and one name that resolves to this machine.
    struct FakeResolver;

    impl Resolver for FakeResolver {
        fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            let address: &str = match name {
                "inward.example" => "127.0.0.1",
                _ => "93.184.216.34",
            };
            Box::pin(std::future::ready(Ok(vec![address.parse().unwrap()])))
        }
    }

    fn egress(allow: &[&str]) -> Egress {
        let rules = EgressRules {
            allow: allow.iter().map(|host| host.parse().unwrap()).collect(),
            deny: Vec::new(),
        };
        Egress::with_resolver(rules, EgressLimits::default(), Arc::new(FakeResolver))
    }

    async fn admit_urls(configured: &str, from: &str, to: &str) -> Result<Route, String> {
        let [configured, from, to] = [configured, from, to].map(|url| url.parse().unwrap());
        admit(&configured, &from, &to, &egress(&[])).await
    }

    #[tokio::test]
    async fn the_configured_host_may_have_any_address() {
        for (card, to) in [
            ("https://a.example/x", "https://a.example:8443/y"),
            ("http://127.0.0.1:1/x", "http://localhost:2/y"),
            ("http://127.0.0.1:1/x", "http://0.0.0.0:1/y"),
            ("https://localhost/x", "http://localhost/y"),
            ("http://10.0.0.1/x", "http://10.0.0.1:81/y"),
            ("https://box/x", "https://Box./y"),
        ] {
            let route = admit_urls(card, card, to).await;
            assert_eq!(route, Ok(Route::Configured), "{card} {to}");
        }
    }

    #[tokio::test]
    async fn another_host_is_reached_only_at_checked_addresses() {
        let checked = |port| Route::Checked(vec![([93, 184, 216, 34], port).into()]);
        for (card, to, port) in [
            ("https://a.example/x", "https://b.example/y", 443),
            ("http://a.example/x", "http://b.example:81/y", 81),
            ("http://10.0.0.1/x", "https://b.example/y", 443),
        ] {
            assert_eq!(
                admit_urls(card, card, to).await,
                Ok(checked(port)),
                "{card} {to}"
            );
        }
    }

    #[tokio::test]
    async fn a_card_cannot_lead_to_a_private_network() {
        for to in [
            "https://127.0.0.1/",
            "https://0.0.0.0/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://localhost/",
            "https://localhost./",
            "https://x.localhost/",
            "https://2130706433/",
            "https://10.1.2.3/",
            "https://192.168.0.1/",
            "https://172.16.0.1/",
            "https://169.254.169.254/",
            "https://100.64.0.1/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://metadata.google.internal/",
            "https://printer.local/",
            "https://intranet/",
            "https://inward.example/",
            "https://b.example:22/",
        ] {
            for card in ["https://a.example/", "https://10.0.0.1/"] {
                let why = admit_urls(card, card, to).await.unwrap_err();
                assert!(why.contains("is refused"), "{card} {to}: {why}");
            }
        }
        // A redirect to an untrusted host cannot lead back to a private host of the user either.
        let why = admit_urls("http://10.0.0.1/", "http://b.example/", "http://10.0.0.1/").await;
        assert!(why.unwrap_err().contains("`egress.allow`"));
    }

    #[tokio::test]
    async fn a_card_can_lead_to_a_host_that_the_user_allows() {
        let [card, to] =
            ["https://a.example/", "https://10.1.2.3/"].map(|url| url.parse().unwrap());
        let route = admit(&card, &card, &to, &egress(&["10.1.2.3"])).await;
        assert_eq!(route, Ok(Route::Checked(vec![([10, 1, 2, 3], 443).into()])));
    }

    #[tokio::test]
    async fn an_https_card_cannot_lead_to_http_or_another_scheme() {
        for (card, to) in [
            ("https://a.example/", "http://a.example/"),
            ("https://10.0.0.1/", "http://10.0.0.1/"),
            ("http://127.0.0.1/", "ftp://127.0.0.1/"),
            ("http://127.0.0.1/", "http://u:p@127.0.0.1/"),
        ] {
            assert!(admit_urls(card, card, to).await.is_err(), "{card} {to}");
        }
    }

    #[test]
    fn a_displayed_url_contains_no_secret() {
        let url = "https://u:p@a.example/x?key=secret#f".parse().unwrap();
        assert_eq!(display_url(&url), "https://a.example/x");
    }
}
