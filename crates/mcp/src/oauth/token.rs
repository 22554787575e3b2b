//! OAuth grants: requesting and refreshing tokens.

use super::LoginError;
use super::client::{OauthClient, SecretPlacement};
use super::web::{address, post_form};
use crate::names::one_line;
use crate::settings::OauthClientSettings;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many seconds before its expiry a token counts as expired.
const MARGIN: u64 = 60;

/// An access token with what is needed to refresh it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Grant {
    access_token: String,
    refresh_token: Option<String>,
    /// The expiry in seconds since the Unix epoch; `None` if the authorization server does not say.
    #[serde(rename = "ends")]
    expires_at: Option<u64>,
    pub(super) scope: Option<String>,
    client: OauthClient,
    token_endpoint: String,
    resource: String,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// The parameters of requests to a token endpoint.
pub(super) struct TokenRequest<'a> {
    pub(super) client: OauthClient,
    /// The client that the user registered, if any.
    pub(super) known: Option<&'a OauthClientSettings>,
    pub(super) token_endpoint: String,
    pub(super) resource: String,
    pub(super) scope: Option<String>,
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

impl TokenRequest<'_> {
    /// Exchanges the code from the browser for a grant.
    pub(super) async fn exchange(
        self,
        code: &str,
        verifier: &str,
        callback: &str,
    ) -> Result<Grant, LoginError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", verifier),
            ("redirect_uri", callback),
        ];
        let answer = self.ask(&fields).await?;
        Ok(self.granted(answer, None))
    }

    async fn ask(&self, fields: &[(&str, &str)]) -> Result<TokenResponse, LoginError> {
        let client = &self.client;
        let mut fields = fields.to_vec();
        fields.push(("resource", &self.resource));
        let endpoint = address(&self.token_endpoint)?;
        let secret = client.secret(self.known, &endpoint).await?;
        let secret = secret.unwrap_or_default();
        let basic = match client.secret_placement {
            SecretPlacement::Header => Some((client.id.as_str(), secret.as_str())),
            SecretPlacement::Nothing => {
                fields.push(("client_id", &client.id));
                None
            }
            SecretPlacement::Form => {
                fields.push(("client_id", &client.id));
                fields.push(("client_secret", &secret));
                None
            }
        };
        let (status, answer) = post_form(&endpoint, &fields, basic).await?;
        let error = answer
            .get("error")
            .and_then(|error| error.as_str())
            .map(|error| {
                let more = answer
                    .get("error_description")
                    .and_then(|more| more.as_str());
                one_line(&format!("{error} {}", more.unwrap_or_default()), 200)
            });
        if let Some(why) = error {
            return Err(LoginError::Denied { why });
        }
        let answer: TokenResponse = serde_json::from_value(answer).map_err(|_| {
            LoginError::unusable(format!(
                "the response of the token endpoint is invalid (status {status})"
            ))
        })?;
        if answer.token_type.eq_ignore_ascii_case("bearer") {
            return Ok(answer);
        }
        Err(LoginError::unusable(format!(
            "lango supports tokens of the type `bearer`, not `{}`",
            one_line(&answer.token_type, 40)
        )))
    }

    fn granted(self, answer: TokenResponse, refresh_token: Option<String>) -> Grant {
        Grant {
            access_token: answer.access_token,
            refresh_token: answer.refresh_token.or(refresh_token),
            expires_at: answer
                .expires_in
                .map(|seconds| now().saturating_add(seconds)),
            scope: answer.scope.or(self.scope),
            client: self.client,
            token_endpoint: self.token_endpoint,
            resource: self.resource,
        }
    }
}

impl Grant {
    pub(crate) fn access_token(&self) -> &str {
        &self.access_token
    }

    /// Returns whether the access token has expired or is about to.
    pub(crate) fn has_expired(&self) -> bool {
        self.expires_at
            .is_some_and(|expires_at| now() + MARGIN >= expires_at)
    }

    /// Refreshes the grant; fails if it has no refresh token.
    pub(crate) async fn renew(
        self,
        known: Option<&OauthClientSettings>,
    ) -> Result<Self, LoginError> {
        let Some(refresh_token) = self.refresh_token else {
            let why = "it has expired and cannot be refreshed".to_owned();
            return Err(LoginError::Denied { why });
        };
        let request = TokenRequest {
            client: self.client,
            known,
            token_endpoint: self.token_endpoint,
            resource: self.resource,
            scope: self.scope,
        };
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", &*refresh_token),
        ];
        let answer = request.ask(&fields).await?;
        Ok(request.granted(answer, Some(refresh_token)))
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
