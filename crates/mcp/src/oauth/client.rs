//! Who lango is to an authority: somebody that the person registered there, or somebody who registers by itself.

use super::LoginError;
use super::discovery::Metadata;
use super::web::{address, post_json};
use crate::names::line;
use crate::settings::{ClientSettings, Token};
use lango_secrets::Credential;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt;
use zeroize::Zeroizing;

/// Who lango is.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct OauthClient {
    pub(super) id: String,
    /// What the authority gave lango when it registered by itself. The secret of a client that the person registered stays
    /// in its variable.
    secret: Option<String>,
    pub(super) shown_in: ShownIn,
}

impl fmt::Debug for OauthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthClient")
            .field("id", &self.id)
            .field("shown_in", &self.shown_in)
            .finish_non_exhaustive()
    }
}

impl OauthClient {
    /// The secret for a request to the authority, if this client has one: looked up where the person registered it.
    pub(super) async fn secret(
        &self,
        known: Option<&ClientSettings>,
        endpoint: &Url,
    ) -> Result<Option<Zeroizing<String>>, LoginError> {
        let Some(known) = known.filter(|known| known.id == self.id) else {
            return Ok(self.secret.clone().map(Zeroizing::new));
        };
        let Some(secret) = &known.secret else {
            return Ok(None);
        };
        // The person logs in at this authority, so it is where the secret belongs.
        let value = available(secret)?.clone().bound_to(endpoint);
        let text = value.text_for(endpoint).await;
        text.map(Some)
            .map_err(|error| LoginError::unusable(error.to_string()))
    }
}

fn available(secret: &Token) -> Result<&Credential, LoginError> {
    secret.value.as_ref().ok_or_else(|| {
        LoginError::unusable(format!(
            "the environment variable `{}` is not set, which holds the secret of the client",
            secret.variable
        ))
    })
}

/// Where the secret is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ShownIn {
    /// There is none.
    Nothing,
    /// In a header.
    Header,
    /// In the form.
    Form,
}

impl ShownIn {
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

    /// What an authority takes, the simplest first; where it says nothing, what the standard says.
    fn taken_by(metadata: &Metadata) -> Vec<Self> {
        match &metadata.token_endpoint_auth_methods_supported {
            None => vec![Self::Header],
            Some(methods) => [Self::Nothing, Self::Header, Self::Form]
                .into_iter()
                .filter(|way| methods.iter().any(|method| method == way.method()))
                .collect(),
        }
    }
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// Who lango is to this authority, with this way back.
pub(super) async fn identify(
    metadata: &Metadata,
    known: Option<&ClientSettings>,
    way_back: &str,
) -> Result<OauthClient, LoginError> {
    let taken = ShownIn::taken_by(metadata);
    if let Some(known) = known {
        let shown_in = match known.secret.as_ref().map(available).transpose()? {
            None => ShownIn::Nothing,
            Some(_) => taken
                .into_iter()
                .find(|way| *way != ShownIn::Nothing)
                .unwrap_or(ShownIn::Header),
        };
        return Ok(OauthClient {
            id: known.id.clone(),
            secret: None,
            shown_in,
        });
    }
    let Some(place) = &metadata.registration_endpoint else {
        return Err(LoginError::unusable(
            "whoever grants access wants lango to be registered there; do so, and set `clientId` (and `clientSecretEnv`) of the server",
        ));
    };
    let wanted = taken.first().copied().unwrap_or(ShownIn::Nothing);
    let request = json!({
        "client_name": "lango",
        "redirect_uris": [way_back],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted.method(),
    });
    let (status, answer) = post_json(&address(place)?, &request).await?;
    let shown = line(&answer.to_string(), 200);
    let registered: Registered = serde_json::from_value(answer).map_err(|_| {
        LoginError::unusable(format!("lango cannot be registered ({status}): {shown}"))
    })?;
    let said = registered.token_endpoint_auth_method.as_deref();
    let shown_in = match (&registered.client_secret, said.and_then(ShownIn::of_method)) {
        (None, _) => ShownIn::Nothing,
        (Some(_), Some(way)) => way,
        (Some(_), None) => wanted,
    };
    Ok(OauthClient {
        id: registered.client_id,
        secret: registered.client_secret,
        shown_in,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        let client = OauthClient {
            id: "me".to_owned(),
            secret: Some("sesame".to_owned()),
            shown_in: ShownIn::Form,
        };
        let shown = format!("{client:?}");
        assert!(shown.contains("me") && !shown.contains("sesame"), "{shown}");
    }
}
