//! What was granted: asking for it, and renewing it.

use super::LoginError;
use super::client::{OauthClient, ShownIn};
use super::web::{address, post_form};
use crate::names::line;
use crate::settings::ClientSettings;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// How long before its end a token counts as over, in seconds.
const MARGIN: u64 = 60;

/// What was granted.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Grant {
    access_token: String,
    refresh_token: Option<String>,
    /// When it ends, in seconds of the clock; not known if the authority does not say.
    ends: Option<u64>,
    /// What it is good for.
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

/// What is asked for.
pub(super) struct Asking<'a> {
    pub(super) client: OauthClient,
    /// Who the person registered lango as, if they did.
    pub(super) known: Option<&'a ClientSettings>,
    pub(super) token_endpoint: String,
    pub(super) resource: String,
    pub(super) scope: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

impl Asking<'_> {
    /// Turns what came back from the browser into a token.
    pub(super) async fn exchange(
        self,
        code: &str,
        verifier: &str,
        way_back: &str,
    ) -> Result<Grant, LoginError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", verifier),
            ("redirect_uri", way_back),
        ];
        let answer = self.ask(&fields).await?;
        Ok(self.granted(answer, None))
    }

    async fn ask(&self, fields: &[(&str, &str)]) -> Result<Answer, LoginError> {
        let client = &self.client;
        let mut fields = fields.to_vec();
        fields.push(("resource", &self.resource));
        let endpoint = address(&self.token_endpoint)?;
        let secret = client.secret(self.known, &endpoint).await?;
        let secret = secret.unwrap_or_default();
        let basic = match client.shown_in {
            ShownIn::Header => Some((client.id.as_str(), secret.as_str())),
            ShownIn::Nothing => {
                fields.push(("client_id", &client.id));
                None
            }
            ShownIn::Form => {
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
                line(&format!("{error} {}", more.unwrap_or_default()), 200)
            });
        if let Some(why) = error {
            return Err(LoginError::Denied { why });
        }
        let answer: Answer = serde_json::from_value(answer).map_err(|_| {
            LoginError::unusable(format!(
                "the answer to a request for a token makes no sense ({status})"
            ))
        })?;
        match answer.token_type.eq_ignore_ascii_case("bearer") {
            true => Ok(answer),
            false => Err(LoginError::unusable(format!(
                "lango shows tokens of the type `bearer`, not `{}`",
                line(&answer.token_type, 40)
            ))),
        }
    }

    fn granted(self, answer: Answer, refresh_token: Option<String>) -> Grant {
        Grant {
            access_token: answer.access_token,
            refresh_token: answer.refresh_token.or(refresh_token),
            ends: answer
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

    /// Whether it is over, or nearly.
    pub(crate) fn is_over(&self) -> bool {
        self.ends.is_some_and(|ends| now() + MARGIN >= ends)
    }

    /// Renews it, if the authority gave the means.
    pub(crate) async fn renew(self, known: Option<&ClientSettings>) -> Result<Self, LoginError> {
        let Some(refresh_token) = self.refresh_token else {
            let why = "it is over, and cannot be renewed".to_owned();
            return Err(LoginError::Denied { why });
        };
        let asking = Asking {
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
        let answer = asking.ask(&fields).await?;
        Ok(asking.granted(answer, Some(refresh_token)))
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
