//! Logins to servers that require authorization.

use crate::http::HttpTestServer;
use crate::support::{Bench, call, credential};
use lango_mcp::{
    Backoff, EnvCredential, LoginError, OauthClientSettings, ServerSettings, ServerTarget, Servers,
};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Logs in as a user who agrees to everything.
async fn login(servers: &Servers) -> Result<(), LoginError> {
    let show = |page: &str| {
        let page = page.to_owned();
        tokio::spawn(async move {
            // The provider of the client's encryption, which plain requests never need.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let browser = reqwest::Client::builder().no_proxy().build().unwrap();
            browser.get(page).send().await.unwrap();
        });
    };
    servers.login("s", None, show).await
}

fn logged(bench: &Bench, what: &str) -> Vec<Value> {
    let log = bench.log();
    log.iter()
        .filter_map(|message| message.get(what).cloned())
        .collect()
}

fn with_client(
    mut settings: ServerSettings,
    id: &str,
    secret: Option<Option<&str>>,
) -> ServerSettings {
    if let ServerTarget::Http(address) = &mut settings.target {
        address.client = Some(OauthClientSettings {
            id: id.to_owned(),
            secret: secret.map(|value| EnvCredential {
                variable: "CLIENT_SECRET".to_owned(),
                value: value.map(credential),
            }),
        });
    }
    settings
}

/// Makes the server refuse the last token that it granted.
async fn expire(http_server: &HttpTestServer) {
    let url = format!("http://127.0.0.1:{}/expire", http_server.port);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let expired = client.post(url).body("x").send().await.unwrap();
    assert!(expired.status().is_success());
}

#[tokio::test]
async fn a_login_is_stored_in_a_private_file_and_used_afterwards() {
    let bench = Bench::new();
    let http_server = HttpTestServer::start(&bench, &["--oauth", "well"]).await;
    let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
    let warnings = servers.warnings().join("\n");
    assert!(warnings.contains("run `lango mcp login s`"), "{warnings}");
    login(&servers).await.unwrap();
    servers.close().await;
    let grants = bench.own("grants.json");
    assert_eq!(
        grants.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );

    let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
    assert!(servers.warnings().is_empty(), "{:?}", servers.warnings());
    assert!(
        call(&servers, "s_echo", json!({ "text": "in" }))
            .await
            .unwrap()
            .contains("in")
    );
    let again = login(&servers).await;
    assert!(
        matches!(again, Err(LoginError::NotNeeded { .. })),
        "{again:?}"
    );

    let authorization = &logged(&bench, "authorize")[0];
    assert_eq!(
        (
            &authorization["code_challenge_method"],
            &authorization["scope"]
        ),
        (&json!("S256"), &json!("use"))
    );
    let resource = format!("http://127.0.0.1:{}/mcp", http_server.port);
    assert_eq!(authorization["resource"], resource.as_str());
    let token = &logged(&bench, "token")[0];
    assert_eq!(
        (&token["resource"], &token["client_id"]),
        (&authorization["resource"], &json!("registered"))
    );
    assert!(
        token["redirect_uri"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:")
    );

    assert!(servers.logout("s").unwrap());
    assert!(!servers.logout("s").unwrap());
    servers.close().await;
    assert!(!std::fs::read_to_string(grants).unwrap().contains("token-"));
}

#[tokio::test]
async fn an_expired_or_refused_token_is_refreshed_without_asking() {
    for arguments in [
        &["--oauth", "well", "--short"] as &[&str],
        &["--oauth", "well"],
    ] {
        let bench = Bench::new();
        let http_server = HttpTestServer::start(&bench, arguments).await;
        let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
        login(&servers).await.unwrap();
        servers.close().await;
        if arguments.len() == 2 {
            // The server grants another token, so it refuses the stored one.
            let form = "grant_type=refresh_token&refresh_token=the-refresh-token";
            let url = format!("http://127.0.0.1:{}/token", http_server.port);
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            assert!(
                client
                    .post(url)
                    .body(form)
                    .send()
                    .await
                    .unwrap()
                    .status()
                    .is_success()
            );
        }
        let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
        assert!(servers.warnings().is_empty(), "{:?}", servers.warnings());
        assert!(
            call(&servers, "s_echo", json!({ "text": "in" }))
                .await
                .unwrap()
                .contains("in")
        );
        let renewed = logged(&bench, "token");
        assert!(renewed.iter().any(
            |authorization| authorization["grant_type"] == "refresh_token"
                && authorization["client_id"] == "registered"
        ));
        assert_eq!(
            logged(&bench, "authorize").len(),
            1,
            "the user is not asked again"
        );
        servers.close().await;
    }
}

#[tokio::test]
async fn two_processes_with_one_login_refresh_it_once_and_never_reuse_a_refresh_token() {
    let bench = Bench::new();
    let http_server = HttpTestServer::start(&bench, &["--oauth", "well", "--rotating"]).await;
    let one = bench.open(vec![http_server.settings(&bench, None)]).await;
    login(&one).await.unwrap();
    let two = bench.open(vec![http_server.settings(&bench, None)]).await;
    assert!(two.warnings().is_empty(), "{:?}", two.warnings());
    for round in 0..5 {
        // Both learn that the token is refused.
        expire(&http_server).await;
        // Before the login, the tools of the first were unknown.
        let one = one.test(None);
        let two = call(&two, "s_echo", json!({ "text": "two" }));
        let (one, two) = tokio::join!(one, two);
        assert!(one[0].result.is_ok(), "{round}: {one:?}");
        assert!(two.is_ok(), "{round}: {two:?}");
        let renewals = logged(&bench, "token");
        let renewals = renewals
            .iter()
            .filter(|authorization| authorization["grant_type"] == "refresh_token");
        assert_eq!(renewals.count(), round + 1);
    }
    one.close().await;
    two.close().await;
}

#[tokio::test]
async fn a_login_or_logout_in_another_process_takes_effect_without_a_restart() {
    let mut bench = Bench::new();
    bench.backoff = Backoff {
        first: Duration::ZERO,
        longest: Duration::ZERO,
    };
    let http_server = HttpTestServer::start(&bench, &["--oauth", "well"]).await;
    let settings = || vec![http_server.settings(&bench, None)];
    let elsewhere = bench.open(settings()).await;
    login(&elsewhere).await.unwrap();
    bench.open(settings()).await.close().await;
    elsewhere.logout("s").unwrap();

    let serving = bench.open(settings()).await;
    let text = json!({ "text": "in" });
    let refused = call(&serving, "s_echo", text.clone()).await.unwrap_err();
    assert!(refused.message.contains("lango mcp login s"), "{refused:?}");
    login(&elsewhere).await.unwrap();
    assert!(call(&serving, "s_echo", text.clone()).await.is_ok());
    elsewhere.logout("s").unwrap();
    let refused = call(&serving, "s_echo", text.clone()).await.unwrap_err();
    assert!(refused.message.contains("lango mcp login s"), "{refused:?}");
    login(&elsewhere).await.unwrap();
    assert!(call(&serving, "s_echo", text).await.is_ok());
    serving.close().await;
    elsewhere.close().await;
}

#[tokio::test]
async fn a_grant_for_one_address_is_not_sent_to_another() {
    let bench = Bench::new();
    let http_server = HttpTestServer::start(&bench, &["--oauth", "well"]).await;
    let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
    login(&servers).await.unwrap();
    servers.close().await;
    let other_bench = Bench::new();
    let other = HttpTestServer::start(&other_bench, &[]).await;
    let servers = bench.open(vec![other.settings(&bench, None)]).await;
    assert!(servers.warnings().is_empty());
    let log = other_bench.log();
    let headers = log.iter().filter_map(|seen| seen["headers"].as_object());
    let names: Vec<String> = headers
        .flat_map(|headers| headers.keys())
        .map(|name| name.to_lowercase())
        .collect();
    assert!(names.contains(&"accept".to_owned()), "{names:?}");
    assert!(!names.contains(&"authorization".to_owned()), "{names:?}");
    servers.close().await;
}

#[tokio::test]
async fn an_untrustworthy_authorization_server_is_rejected_before_the_user_is_asked() {
    for (way, expected) in [
        (
            "other-issuer",
            "claims to be `https://elsewhere.example.com`",
        ),
        (
            "other-resource",
            "the server claims to be `https://elsewhere.example.com`, which is another address",
        ),
        ("no-pkce", "does not support PKCE with S256"),
        ("no-registration", "set `clientId`"),
    ] {
        let bench = Bench::new();
        let http_server = HttpTestServer::start(&bench, &["--oauth", way]).await;
        let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
        let error = login(&servers).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{way}: {error}");
        assert!(logged(&bench, "authorize").is_empty(), "{way}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_configured_client_is_not_registered_and_the_users_refusal_is_reported() {
    let bench = Bench::new();
    let http_server = HttpTestServer::start(&bench, &["--oauth", "no-registration"]).await;
    let settings = with_client(http_server.settings(&bench, None), "my-lango", None);
    let servers = bench.open(vec![settings]).await;
    login(&servers).await.unwrap();
    assert_eq!(logged(&bench, "authorize")[0]["client_id"], "my-lango");
    servers.close().await;

    let bench = Bench::new();
    let http_server = HttpTestServer::start(&bench, &["--oauth", "denied"]).await;
    let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
    assert_eq!(
        login(&servers).await,
        Err(LoginError::Denied {
            why: "access_denied".to_owned()
        })
    );
    assert!(logged(&bench, "token").is_empty());
    servers.close().await;
}

#[tokio::test]
async fn the_secret_of_a_configured_client_is_sent_at_every_refresh_and_never_stored() {
    let bench = Bench::new();
    let http_server = HttpTestServer::start(&bench, &["--oauth", "no-registration"]).await;
    let settings = |secret| {
        let settings = http_server.settings(&bench, None);
        vec![with_client(settings, "my-lango", Some(secret))]
    };
    let servers = bench.open(settings(None)).await;
    let error = login(&servers).await.unwrap_err().to_string();
    assert!(
        error.contains("`CLIENT_SECRET` with the client secret is not set"),
        "{error}"
    );
    let servers = bench.open(settings(Some("sesame"))).await;
    login(&servers).await.unwrap();
    let stored = std::fs::read_to_string(bench.own("grants.json")).unwrap();
    assert!(
        stored.contains("my-lango") && !stored.contains("sesame"),
        "{stored}"
    );
    expire(&http_server).await;
    assert!(servers.test(None).await[0].result.is_ok());
    let shown = logged(&bench, "headers");
    let shown = shown
        .iter()
        .filter(|headers| headers["authorization"] == "Basic bXktbGFuZ286c2VzYW1l");
    assert_eq!(shown.count(), 2, "at the login and at the renewal");
    let stored = std::fs::read_to_string(bench.own("grants.json")).unwrap();
    assert!(!stored.contains("sesame"), "{stored}");
    servers.close().await;
}

#[tokio::test]
async fn a_callback_with_a_wrong_state_is_ignored() {
    let bench = Bench::new();
    let http_server = HttpTestServer::start(&bench, &["--oauth", "well"]).await;
    let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
    let show = |page: &str| {
        let page = reqwest::Url::parse(page).unwrap();
        tokio::spawn(async move {
            let back = page
                .query_pairs()
                .find(|(name, _)| name == "redirect_uri")
                .unwrap()
                .1
                .into_owned();
            let browser = reqwest::Client::builder().no_proxy().build().unwrap();
            for forged in [
                "?code=the-code&state=guessed",
                "?code=the-code",
                "/elsewhere",
                "",
            ] {
                let shown = browser.get(format!("{back}{forged}")).send().await.unwrap();
                assert_eq!(shown.status(), 404, "{forged}");
            }
            browser.get(page).send().await.unwrap();
        });
    };
    servers.login("s", None, show).await.unwrap();
    servers.close().await;
}

#[tokio::test]
async fn a_program_and_an_open_server_need_no_login() {
    let bench = Bench::new();
    let servers = bench.opened(&[]).await;
    let refused = login(&servers).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "no login is needed: lango starts its program itself"
    );
    servers.close().await;
    let http_server = HttpTestServer::start(&bench, &[]).await;
    let servers = bench.open(vec![http_server.settings(&bench, None)]).await;
    let refused = login(&servers).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "no login is needed: the server accepts lango without it"
    );
    servers.close().await;
}
