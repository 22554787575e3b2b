//! Sign-in links of the page, and the access tokens that they and other programs use.

use crate::app::{App, Failure};
use lango_api::sign_in_link;
use lango_api::tokens::{LINK_LIFETIME, NewToken, issue};
use lango_core::{AccessToken, Scopes, StoreError, TokenKind, TokenStore, UserId};
use lango_engine::SystemClock;
use lango_store::Store;

/// Creates a sign-in link for a user of a server.
pub async fn new_link(store: &Store, user: &UserId, url: &str) -> Result<String, StoreError> {
    let new = NewToken {
        user: user.clone(),
        name: "sign-in link".into(),
        kind: TokenKind::Link,
        scopes: Scopes::all(),
        lifetime: Some(LINK_LIFETIME),
    };
    let issued = issue(store, &SystemClock, new).await?;
    Ok(sign_in_link(url, &issued.secret))
}

/// Returns the address to which a sign-in link leads: the given one, or the server's according to the configuration.
pub fn link_address(app: &App, url: Option<String>) -> Result<String, Failure> {
    let url = url.unwrap_or_else(|| server_url(app));
    if !url.starts_with("http://") && !url.starts_with("https://") {
        let message = format!("`{url}` is not an address that starts with http:// or https://");
        return Err(Failure::usage(message).next("lango tokens link --url http://127.0.0.1:18789"));
    }
    Ok(url)
}

/// Returns the address of the server according to the configuration.
fn server_url(app: &App) -> String {
    let server = &app.loaded.settings.server;
    match &server.public_url {
        Some(url) => url.clone(),
        None => {
            let host = server.host.as_deref().unwrap_or("127.0.0.1");
            let host = if host == "0.0.0.0" || host == "::" {
                "127.0.0.1"
            } else {
                host
            };
            format!("http://{host}:{}", server.port)
        }
    }
}

/// Revokes the token whose id starts with `prefix`, and returns it. Fails unless exactly one token matches.
pub async fn revoke_token(app: &App, prefix: &str) -> Result<AccessToken, Failure> {
    let store = app.existing_store()?;
    let tokens = store.tokens().await?;
    let matches = |token: &AccessToken| !prefix.is_empty() && token.id.starts_with(prefix);
    let mut matching = tokens.into_iter().filter(matches);
    match (matching.next(), matching.next()) {
        (Some(token), None) => {
            store.revoke_token(&token.id).await?;
            Ok(token)
        }
        (None, _) => Err(Failure::usage(format!("there is no token `{prefix}`"))
            .next("run `lango tokens list` to see the tokens")),
        _ => Err(
            Failure::usage(format!("more than one token id starts with `{prefix}`"))
                .next("give more characters of the id"),
        ),
    }
}
