//! One login, from the server's challenge to the stored grant.

use super::client::identify;
use super::discovery::{Authority, discover};
use super::listener::CallbackListener;
use super::token::TokenRequest;
use super::web::address;
use super::{LoginError, ServerAuth};
use crate::names::one_line;
use crate::tool_definition;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Logs in. Calls `show` with the address that the user must open in a browser.
pub(crate) async fn login(
    auth: &ServerAuth,
    scope: Option<&str>,
    show: impl FnOnce(&str) + Send,
) -> Result<(), LoginError> {
    let challenge = auth.challenge();
    let authority = discover(&auth.address.url, challenge.as_ref()).await?;
    let callback = CallbackListener::open().await?;
    let metadata = &authority.metadata;
    let known = auth.address.client.as_ref();
    let client = identify(metadata, known, &callback.address).await?;
    let challenged = challenge.and_then(|challenge| challenge.scope);
    let wanted = scope.map(str::to_owned).or(challenged);
    let granted = auth.grant().and_then(|grant| grant.scope);
    let scope = choose_scope(wanted, granted, &authority);
    let (state, verifier) = (secret()?, secret()?);
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let mut page = address(&metadata.authorization_endpoint)?;
    page.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.id)
        .append_pair("redirect_uri", &callback.address)
        .append_pair("state", &state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &authority.resource);
    if let Some(scope) = &scope {
        page.query_pairs_mut().append_pair("scope", scope);
    }
    show(page.as_str());
    let back = callback.address.clone();
    let returned = callback.wait(&state).await?;
    check_issuer(&authority, returned.issuer.as_deref())?;
    let code = match (returned.code, returned.error) {
        (Some(code), None) => code,
        (_, error) => {
            let why = one_line(
                &error.unwrap_or_else(|| "no code came back".to_owned()),
                200,
            );
            return Err(LoginError::Denied { why });
        }
    };
    let request = TokenRequest {
        client,
        known,
        token_endpoint: metadata.token_endpoint.clone(),
        resource: authority.resource,
        scope,
    };
    auth.store(&request.exchange(&code, &verifier, &back).await?)
}

/// Chooses the scope to request: what the server or the user asked for together with what was granted before, else all
/// scopes that the server lists, else none.
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

/// Rejects a response that does not come from the expected authorization server.
fn check_issuer(authority: &Authority, issuer: Option<&str>) -> Result<(), LoginError> {
    let metadata = &authority.metadata;
    match issuer {
        Some(issuer) if issuer == metadata.issuer => Ok(()),
        None if !metadata.authorization_response_iss_parameter_supported => Ok(()),
        other => Err(LoginError::unusable(format!(
            "the answer came from `{}`, not from `{}`",
            one_line(other.unwrap_or("an unnamed issuer"), 200),
            one_line(&metadata.issuer, 200)
        ))),
    }
}

/// Returns a random text that cannot be guessed.
fn secret() -> Result<String, LoginError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        LoginError::unusable(format!("no random numbers are available: {error}"))
    })?;
    Ok(tool_definition::hex(&bytes))
}
