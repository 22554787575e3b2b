//! lango's OAuth client: one that the user registered, or one that lango registers itself.

use super::LoginError;
use super::discovery::Metadata;
use super::web::{address, post_json};
use crate::names::one_line;
use crate::settings::{EnvCredential, OauthClientSettings};
use lango_secrets::Credential;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt;
use zeroize::Zeroizing;

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct OauthClient {
    pub(super) id: String,
    /// The secret that lango received when it registered itself. The secret of a client that the user registered stays
    /// in its environment variable.
    secret: Option<String>,
    #[serde(rename = "shown_in")]
    pub(super) secret_placement: SecretPlacement,
}

impl fmt::Debug for OauthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthClient")
            .field("id", &self.id)
            .field("secret_placement", &self.secret_placement)
            .finish_non_exhaustive()
    }
}

impl OauthClient {
    /// Returns the secret for a request to the authorization server, if this client has one.
    pub(super) async fn secret(
        &self,
        known: Option<&OauthClientSettings>,
        endpoint: &Url,
    ) -> Result<Option<Zeroizing<String>>, LoginError> {
        let Some(known) = known.filter(|known| known.id == self.id) else {
            return Ok(self.secret.clone().map(Zeroizing::new));
        };
        let Some(secret) = &known.secret else {
            return Ok(None);
        };
        // The user logs in at this authorization server, so the secret may be sent there.
        let value = available(secret)?.clone().bound_to(endpoint);
        let text = value.text_for(endpoint).await;
        text.map(Some)
            .map_err(|error| LoginError::unusable(error.to_string()))
    }
}

fn available(secret: &EnvCredential) -> Result<&Credential, LoginError> {
    secret.value.as_ref().ok_or_else(|| {
        LoginError::unusable(format!(
            "the environment variable `{}` with the client secret is not set",
            secret.variable
        ))
    })
}

/// Where a request contains the client secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SecretPlacement {
    /// Nowhere: the client has no secret.
    Nothing,
    Header,
    Form,
}

impl SecretPlacement {
    fn of_method(method: &str) -> Option<Self> {
        match method {
            "none" => Some(Self::Nothing),
            "client_secret_basic" => Some(Self::Header),
            "client_secret_post" => Some(Self::Form),
            _ => None,
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Header => "client_secret_basic",
            Self::Form => "client_secret_post",
        }
    }

    /// Returns the placements that an authorization server accepts, simplest first; the standard's default if it lists
    /// none.
    fn accepted_by(metadata: &Metadata) -> Vec<Self> {
        match &metadata.token_endpoint_auth_methods_supported {
            None => vec![Self::Header],
            Some(methods) => [Self::Nothing, Self::Header, Self::Form]
                .into_iter()
                .filter(|placement| methods.iter().any(|method| method == placement.method()))
                .collect(),
        }
    }
}

#[derive(Deserialize)]
struct ClientRegistration {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// Returns the client to use with this authorization server and redirect address. Registers lango if the user did not
/// configure a client.
pub(super) async fn identify(
    metadata: &Metadata,
    known: Option<&OauthClientSettings>,
    callback: &str,
) -> Result<OauthClient, LoginError> {
    let accepted = SecretPlacement::accepted_by(metadata);
    if let Some(known) = known {
        let secret_placement = match known.secret.as_ref().map(available).transpose()? {
            None => SecretPlacement::Nothing,
            Some(_) => accepted
                .into_iter()
                .find(|placement| *placement != SecretPlacement::Nothing)
                .unwrap_or(SecretPlacement::Header),
        };
        return Ok(OauthClient {
            id: known.id.clone(),
            secret: None,
            secret_placement,
        });
    }
    let Some(endpoint) = &metadata.registration_endpoint else {
        return Err(LoginError::unusable(
            "the authorization server does not let lango register itself; register it there, then set `clientId` (and \
             `clientSecretEnv`) of the MCP server",
        ));
    };
    let wanted = accepted
        .first()
        .copied()
        .unwrap_or(SecretPlacement::Nothing);
    let request = json!({
        "client_name": "lango",
        "redirect_uris": [callback],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted.method(),
    });
    let (status, answer) = post_json(&address(endpoint)?, &request).await?;
    let shown = one_line(&answer.to_string(), 200);
    let registered: ClientRegistration = serde_json::from_value(answer).map_err(|_| {
        LoginError::unusable(format!(
            "the registration of lango failed (status {status}): {shown}"
        ))
    })?;
    let method = registered.token_endpoint_auth_method.as_deref();
    let secret_placement = match (
        &registered.client_secret,
        method.and_then(SecretPlacement::of_method),
    ) {
        (None, _) => SecretPlacement::Nothing,
        (Some(_), Some(placement)) => placement,
        (Some(_), None) => wanted,
    };
    Ok(OauthClient {
        id: registered.client_id,
        secret: registered.client_secret,
        secret_placement,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_print_the_secret() {
        let client = OauthClient {
            id: "me".to_owned(),
            secret: Some("sesame".to_owned()),
            secret_placement: SecretPlacement::Form,
        };
        let shown = format!("{client:?}");
        assert!(shown.contains("me") && !shown.contains("sesame"), "{shown}");
    }
}
