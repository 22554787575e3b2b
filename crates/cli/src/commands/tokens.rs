//! `lango tokens`: manages access tokens of the HTTP API and sign-in links of the page.

use crate::args::TokensCommand;
use crate::exit::Exit;
use crate::screen::{self, Layout, age, one_line};
use lango::app::App;
use lango::app::Failure;
use lango::app::server::{link_address, new_link, revoke_token};
use lango_api::tokens::{NewToken, issue};
use lango_core::{AccessToken, Clock, Timestamp, TokenKind, TokenStore, UserId};
use lango_engine::SystemClock;

/// Runs the command.
pub(super) async fn tokens(
    config: Vec<String>,
    command: Option<TokensCommand>,
) -> Result<Exit, Failure> {
    let app = App::load(config).await?;
    match command.unwrap_or_default() {
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
        TokensCommand::Revoke { id } => {
            let token = revoke_token(&app, &id).await?;
            let line = line(&token, SystemClock.now(), [0; 3]);
            screen::print(&format!("revoked: {line}"))?;
        }
        TokensCommand::Link { url } => {
            app.sessions().await?;
            let url = link_address(&app, url)?;
            let link = new_link(&app.storage.database, &app.user(), &url).await?;
            screen::print(&link)?;
            screen::say("open it in a browser within 10 minutes; it signs one browser in");
        }
    }
    Ok(Exit::Ok)
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
