//! OpenAI's two APIs, and which of them to use at an address if the configuration does not say. Azure belongs to this
//! family too, with a different path and key header.

use crate::http::Headers;
use crate::openai;
use reqwest::Url;
use zeroize::Zeroizing;

/// An API of the OpenAI family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenAiApi {
    /// Chat completions, which most servers speak.
    Chat,
    /// OpenAI's Responses API, the only one in which its newer models accept tools.
    Responses,
}

impl OpenAiApi {
    pub const ALL: [Self; 2] = [Self::Chat, Self::Responses];

    /// Returns the name used in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }

    /// Returns the API to use at an address: Responses for OpenAI and Azure's `/openai/v1`, otherwise chat completions.
    pub fn at(base_url: &str) -> Self {
        let Ok(url) = Url::parse(base_url) else {
            return Self::Chat;
        };
        let host = url.host_str().unwrap_or_default();
        let path = url.path().trim_end_matches('/');
        let is_openai = host == "api.openai.com" || host.ends_with(".api.openai.com");
        if is_openai || (is_azure(host) && ["", AZURE_PATH].contains(&path)) {
            Self::Responses
        } else {
            Self::Chat
        }
    }
}

/// The path of Azure's API without dated versions.
const AZURE_PATH: &str = "/openai/v1";

fn is_azure(host: &str) -> bool {
    [
        ".openai.azure.com",
        ".cognitiveservices.azure.com",
        ".services.ai.azure.com",
    ]
    .iter()
    .any(|domain| host.ends_with(domain))
}

fn is_at_azure(base_url: &str) -> bool {
    Url::parse(base_url).is_ok_and(|url| url.host_str().is_some_and(is_azure))
}

/// Returns the path to append to an address without one.
pub(crate) fn version(base_url: &str) -> &'static str {
    if is_at_azure(base_url) {
        AZURE_PATH
    } else {
        "/v1"
    }
}

/// Returns the headers that carry the key. Azure's own keys go into the `api-key` header. Entra ID tokens, which are
/// JWTs, and the keys of all other providers are sent as bearer tokens.
pub(crate) fn headers(base_url: &str, key: Option<&str>) -> Headers {
    match key {
        Some(key) if is_at_azure(base_url) && !key.starts_with("eyJ") => {
            vec![("api-key", Zeroizing::new(key.to_owned()))]
        }
        key => openai::headers(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openai_and_azure_use_responses_and_all_others_chat() {
        for address in [
            "https://api.openai.com/v1",
            "https://eu.api.openai.com/v1",
            "https://API.OpenAI.com",
            "https://mine.openai.azure.com/openai/v1/",
            "https://mine.openai.azure.com/openai/v1?api-version=preview",
            "https://mine.cognitiveservices.azure.com/openai/v1",
            "https://mine.services.ai.azure.com",
        ] {
            assert_eq!(OpenAiApi::at(address), OpenAiApi::Responses, "{address}");
        }
        for address in [
            "http://127.0.0.1:11434/v1",
            "https://openrouter.ai/api/v1",
            "https://api.openai.com.example.org/v1",
            "https://myapi.openai.com/v1",
            "https://mine.services.ai.azure.com/models",
            "https://mine.openai.azure.com/openai/deployments/mine?api-version=2024-10-21",
            "nonsense",
        ] {
            assert_eq!(OpenAiApi::at(address), OpenAiApi::Chat, "{address}");
        }
    }

    #[test]
    fn azure_takes_a_key_in_its_own_header_and_a_token_as_bearer() {
        let azure = "https://mine.openai.azure.com/openai/v1";
        let key = |text: &str| Zeroizing::new(text.to_owned());
        assert_eq!(headers(azure, Some("abc")), [("api-key", key("abc"))]);
        let token = headers(azure, Some("eyJhbGciOi.J9.x"));
        assert_eq!(token[0].0, "authorization");
        let openai = headers("https://api.openai.com/v1", Some("abc"));
        assert_eq!(openai, [("authorization", key("Bearer abc"))]);
        assert!(headers(azure, None).is_empty());
    }
}
