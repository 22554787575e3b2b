//! Where a card may lead. The user chose the host of the card's URL; what a card or a redirect names besides was written by a
//! stranger, and passes the egress guard like every address that a model can choose.

use lango_net::{AddressClass, Egress, classify};
use reqwest::Url;
use std::net::{IpAddr, SocketAddr};

/// How a URL is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// On the host that the user configured: however its name resolves.
    Configured,
    /// On another host: at the addresses that the guard checked, and no others.
    Checked(Vec<SocketAddr>),
}

/// Decides whether one URL may lead to another, and how that is reached; else says why not. `configured` is the URL of the
/// card in the user's configuration.
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
        return Err("it holds a name or password".to_owned());
    }
    if from.scheme() == "https" && to.scheme() == "http" && !is_this_machine(from) {
        return Err("it leads from https to http".to_owned());
    }
    // A stranger must not lead back to the user's host either: a private one is not open to strangers.
    if is_same_host(configured, from) && is_same_host(configured, to) {
        return Ok(Route::Configured);
    }
    let destination = egress.check(to).map_err(|refusal| refusal.to_string())?;
    let addresses = egress.resolve(&destination).await;
    let addresses = addresses.map_err(|refusal| refusal.to_string())?;
    Ok(Route::Checked(addresses))
}

/// The URL as it is shown: without a query, which may hold a key, and without a name or password.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    super::words::one_line(url.as_str(), 200)
}

/// Whether it is on this machine: what is said to it goes through no proxy.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    let host = host(url);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => matches!(
            classify(address.to_canonical()),
            AddressClass::Loopback | AddressClass::Unspecified
        ),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Whether two URLs have the host in common; this machine has several names.
fn is_same_host(one: &Url, other: &Url) -> bool {
    host(one) == host(other) || is_this_machine(one) && is_this_machine(other)
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

    /// Public names, and one that resolves to this machine.
    struct Names;

    impl Resolver for Names {
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
        Egress::with_resolver(rules, EgressLimits::default(), Arc::new(Names))
    }

    async fn led(configured: &str, from: &str, to: &str) -> Result<Route, String> {
        let [configured, from, to] = [configured, from, to].map(|url| url.parse().unwrap());
        admit(&configured, &from, &to, &egress(&[])).await
    }

    #[tokio::test]
    async fn the_configured_host_is_reached_wherever_it_is() {
        for (card, to) in [
            ("https://a.example/x", "https://a.example:8443/y"),
            ("http://127.0.0.1:1/x", "http://localhost:2/y"),
            ("https://localhost/x", "http://localhost/y"),
            ("http://10.0.0.1/x", "http://10.0.0.1:81/y"),
            ("https://box/x", "https://Box./y"),
        ] {
            let route = led(card, card, to).await;
            assert_eq!(route, Ok(Route::Configured), "{card} {to}");
        }
    }

    #[tokio::test]
    async fn another_host_is_reached_at_the_addresses_that_were_checked() {
        let checked = |port| Route::Checked(vec![([93, 184, 216, 34], port).into()]);
        for (card, to, port) in [
            ("https://a.example/x", "https://b.example/y", 443),
            ("http://a.example/x", "http://b.example:81/y", 81),
            ("http://10.0.0.1/x", "https://b.example/y", 443),
        ] {
            assert_eq!(led(card, card, to).await, Ok(checked(port)), "{card} {to}");
        }
    }

    #[tokio::test]
    async fn a_card_does_not_lead_into_a_network_that_the_user_did_not_name() {
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
                let why = led(card, card, to).await.unwrap_err();
                assert!(why.contains("is refused"), "{card} {to}: {why}");
            }
        }
        // Nor does a redirect to a stranger lead back to a private host of the user.
        let why = led("http://10.0.0.1/", "http://b.example/", "http://10.0.0.1/").await;
        assert!(why.unwrap_err().contains("`egress.allow`"));
    }

    #[tokio::test]
    async fn what_the_user_allows_can_be_named_by_a_card() {
        let [card, to] =
            ["https://a.example/", "https://10.1.2.3/"].map(|url| url.parse().unwrap());
        let route = admit(&card, &card, &to, &egress(&["10.1.2.3"])).await;
        assert_eq!(route, Ok(Route::Checked(vec![([10, 1, 2, 3], 443).into()])));
    }

    #[tokio::test]
    async fn a_card_by_https_does_not_lead_to_http_or_another_scheme() {
        for (card, to) in [
            ("https://a.example/", "http://a.example/"),
            ("https://10.0.0.1/", "http://10.0.0.1/"),
            ("http://127.0.0.1/", "ftp://127.0.0.1/"),
            ("http://127.0.0.1/", "http://u:p@127.0.0.1/"),
        ] {
            assert!(led(card, card, to).await.is_err(), "{card} {to}");
        }
    }

    #[test]
    fn what_is_shown_of_a_url_holds_no_secret() {
        let url = "https://u:p@a.example/x?key=secret#f".parse().unwrap();
        assert_eq!(shown(&url), "https://a.example/x");
    }
}
