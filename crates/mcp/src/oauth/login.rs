//! One login, from the server's refusal to what is granted.

use super::client::identify;
use super::discovery::{Authority, discover};
use super::listener::WayBack;
use super::token::Asking;
use super::web::address;
use super::{Bearer, LoginError};
use crate::form;
use crate::names::line;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Logs in. `show` is given the address that the person opens in a browser.
pub(crate) async fn login(
    bearer: &Bearer,
    scope: Option<&str>,
    show: impl FnOnce(&str) + Send,
) -> Result<(), LoginError> {
    let challenge = bearer.challenge();
    let authority = discover(&bearer.address.url, challenge.as_ref()).await?;
    let way_back = WayBack::open().await?;
    let metadata = &authority.metadata;
    let known = bearer.address.client.as_ref();
    let client = identify(metadata, known, &way_back.address).await?;
    let challenged = challenge.and_then(|challenge| challenge.scope);
    let wanted = scope.map(str::to_owned).or(challenged);
    let granted = bearer.grant().and_then(|grant| grant.scope);
    let scope = choose_scope(wanted, granted, &authority);
    let (state, verifier) = (secret()?, secret()?);
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let mut page = address(&metadata.authorization_endpoint)?;
    page.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.id)
        .append_pair("redirect_uri", &way_back.address)
        .append_pair("state", &state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &authority.resource);
    if let Some(scope) = &scope {
        page.query_pairs_mut().append_pair("scope", scope);
    }
    show(page.as_str());
    let back = way_back.address.clone();
    let returned = way_back.wait(&state).await?;
    check_issuer(&authority, returned.issuer.as_deref())?;
    let code = match (returned.code, returned.error) {
        (Some(code), None) => code,
        (_, error) => {
            let why = line(
                &error.unwrap_or_else(|| "no code came back".to_owned()),
                200,
            );
            return Err(LoginError::Denied { why });
        }
    };
    let asking = Asking {
        client,
        known,
        token_endpoint: metadata.token_endpoint.clone(),
        resource: authority.resource,
        scope,
    };
    bearer.keep(&asking.exchange(&code, &verifier, &back).await?)
}

/// What is asked for: what the server or the person wants together with what was granted before, else all that the server
/// names, else nothing in particular.
fn choose_scope(
    wanted: Option<String>,
    granted: Option<String>,
    authority: &Authority,
) -> Option<String> {
    let Some(wanted) = wanted else {
        let all = authority.scopes.as_ref().map(|scopes| scopes.join(" "));
        return all.filter(|scopes| !scopes.is_empty());
    };
    let mut scopes: Vec<&str> = Vec::new();
    for scope in granted
        .iter()
        .chain([&wanted])
        .flat_map(|text| text.split(' '))
    {
        if !scope.is_empty() && !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    Some(scopes.join(" "))
}

/// An answer of somebody else's is not taken for the authority's.
fn check_issuer(authority: &Authority, issuer: Option<&str>) -> Result<(), LoginError> {
    let metadata = &authority.metadata;
    match issuer {
        Some(issuer) if issuer == metadata.issuer => Ok(()),
        None if !metadata.authorization_response_iss_parameter_supported => Ok(()),
        other => Err(LoginError::unusable(format!(
            "the answer came from `{}`, not from `{}`",
            line(other.unwrap_or("nobody"), 200),
            line(&metadata.issuer, 200)
        ))),
    }
}

/// A text that nobody can guess.
fn secret() -> Result<String, LoginError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| LoginError::unusable(format!("there is no chance here: {error}")))?;
    Ok(form::hex(&bytes))
}
