//! `lango tokens`: manages access tokens of the HTTP API and sign-in links of the page.

use crate::args::TokensCommand;
use crate::exit::Exit;
use crate::screen::{self, Layout, age, one_line};
use lango::app::App;
use lango::app::Failure;
use lango_api::sign_in_link;
use lango_api::tokens::{LINK_LIFETIME, NewToken, issue};
use lango_core::{
    AccessToken, Clock, Scopes, StoreError, Timestamp, TokenKind, TokenStore, UserId,
};
use lango_engine::SystemClock;
use lango_store::Store;

/// Runs the command.
pub async fn tokens(config: Vec<String>, command: TokensCommand) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    match command {
        TokensCommand::Create {
            name,
            scope,
            user,
            expires,
            json,
        } => {
            app.sessions().await?;
            let user = user.map_or_else(|| app.user(), |user| UserId::from(user.as_str()));
            let new = NewToken {
                user,
                name: one_line(&name, 80).into(),
                kind: TokenKind::Token,
                scopes: scope.into_iter().collect(),
                lifetime: expires.map(|expires| expires.0),
            };
            create(&app, new, json).await?;
        }
        TokensCommand::List { json } => list(&app, json).await?,
        TokensCommand::Revoke { id } => revoke(&app, &id).await?,
        TokensCommand::Link { url } => {
            app.sessions().await?;
            let url = url.unwrap_or_else(|| server_url(&app));
            if !url.starts_with("http://") && !url.starts_with("https://") {
                let message =
                    format!("`{url}` is not an address that starts with http:// or https://");
                return Err(
                    Failure::usage(message).next("lango tokens link --url http://127.0.0.1:18789")
                );
            }
            let link = new_link(&app.storage.database, &app.user(), &url).await?;
            screen::print(&link)?;
            screen::say("open it in a browser within 10 minutes; it signs one browser in");
        }
    }
    Ok(Exit::Ok)
}

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

async fn create(app: &App, new: NewToken, as_json: bool) -> Result<(), Failure> {
    let issued = issue(&*app.storage.database, &SystemClock, new).await?;
    if as_json {
        let mut shown = serde_json::json!(issued.token);
        shown["token"] = issued.secret.into();
        return Ok(screen::print(&screen::json(&shown, Layout::Indented)?)?);
    }
    screen::print(&issued.secret)?;
    let token = &issued.token;
    screen::say(&format!(
        "token {} of {} may {}; it is shown only once\n  revoke it: lango tokens revoke {}",
        token.id, token.user, token.scopes, token.id
    ));
    Ok(())
}

async fn list(app: &App, as_json: bool) -> Result<(), Failure> {
    // Without a database there are no tokens, and listing must not create one.
    app.sessions_for_reading().await?;
    let tokens = match app.existing_store() {
        Ok(store) => store.tokens().await?,
        Err(_) => Vec::new(),
    };
    if as_json {
        return Ok(screen::print(&screen::json(&tokens, Layout::Indented)?)?);
    }
    if tokens.is_empty() {
        return Ok(screen::print(
            "no tokens; create one with `lango tokens create NAME`",
        )?);
    }
    let now = SystemClock.now();
    let widest = |text: fn(&AccessToken) -> String| {
        let widths = tokens.iter().map(|token| text(token).chars().count());
        widths.max().unwrap_or(0)
    };
    let widths = [widest(shown_name), widest(shown_user), widest(shown_scopes)];
    for token in &tokens {
        screen::print(&line(token, now, widths))?;
    }
    Ok(())
}

fn shown_name(token: &AccessToken) -> String {
    one_line(&token.name, 80)
}

fn shown_user(token: &AccessToken) -> String {
    format!("of {}", token.user)
}

fn shown_scopes(token: &AccessToken) -> String {
    format!("({})", token.scopes)
}

/// Describes a token in one line, with its name, user and scopes in columns of at least these widths.
fn line(token: &AccessToken, now: Timestamp, widths: [usize; 3]) -> String {
    let expiry = match token.expires {
        Some(expires) if expires <= now => "  expired".to_owned(),
        Some(expires) => {
            let minutes = (expires.0 - now.0).div_ceil(60 * 1000);
            match minutes {
                0..120 => format!("  expires in {minutes} min"),
                120..2880 => format!("  expires in {} h", minutes / 60),
                _ => format!("  expires in {} days", minutes / 1440),
            }
        }
        None => String::new(),
    };
    let (id, kind) = (&token.id, token.kind.name());
    let columns = [shown_name, shown_user, shown_scopes].map(|shown| shown(token));
    let [name, user, scopes] = columns;
    let [name_width, user_width, scopes_width] = widths;
    let age = age(token.created, now);
    format!(
        "{id}  {kind:<7}  {name:<name_width$}  {user:<user_width$}  {scopes:<scopes_width$}  {age}{expiry}"
    )
}

async fn revoke(app: &App, prefix: &str) -> Result<(), Failure> {
    let store = app.existing_store()?;
    let tokens = store.tokens().await?;
    let fits = |token: &&AccessToken| !prefix.is_empty() && token.id.starts_with(prefix);
    let found: Vec<&AccessToken> = tokens.iter().filter(fits).collect();
    match found.as_slice() {
        [token] => {
            store.revoke_token(&token.id).await?;
            Ok(screen::print(&format!(
                "revoked: {}",
                line(token, SystemClock.now(), [0; 3])
            ))?)
        }
        [] => Err(Failure::usage(format!("there is no token `{prefix}`"))
            .next("run `lango tokens list` to see the tokens")),
        _ => Err(
            Failure::usage(format!("more than one token id starts with `{prefix}`"))
                .next("give more characters of the id"),
        ),
    }
}
