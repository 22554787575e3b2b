//! Credentials for lango's own requests: handles whose values are resolved when a request is built.

use crate::binding::Origin;
use crate::mask::Masks;
use crate::source::SecretError;
use crate::value::SecretValue;
use lango_core::{BoxFuture, Text};
use std::fmt;
use std::sync::Arc;
use url::Url;
use zeroize::Zeroizing;

/// A source of the values that the configuration refers to.
pub trait CredentialSource: fmt::Debug + Send + Sync {
    /// Returns the value for a setting, which is the name of an environment variable or `secret:NAME`, and masks the
    /// value from now on.
    fn value<'a>(
        &'a self,
        setting: &'a str,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>>;
}

/// A handle to a configured key or token. It does not contain the value, and resolves it only for requests to one
/// origin.
#[derive(Clone)]
pub struct Credential {
    source: Arc<dyn CredentialSource>,
    setting: Text,
    origin: Option<Origin>,
}

impl Credential {
    /// Creates a handle for a setting. It can be used only after [`Self::bound_to`].
    pub fn new(source: Arc<dyn CredentialSource>, setting: &str) -> Self {
        Self {
            source,
            setting: setting.into(),
            origin: None,
        }
    }

    /// Creates a handle for a known value, and masks the value.
    pub fn fixed(setting: &str, value: SecretValue, masks: &Masks) -> Self {
        masks.add(setting, &value);
        Self::new(Arc::new(FixedValue(Arc::new(value))), setting)
    }

    /// Restricts the credential to the origin of a URL.
    #[must_use]
    pub fn bound_to(self, url: &Url) -> Self {
        Self {
            origin: Origin::of(url),
            ..self
        }
    }

    /// Returns the setting: the name of an environment variable, or `secret:NAME`.
    pub fn setting(&self) -> &str {
        &self.setting
    }

    /// Checks that there is a value, without returning it.
    pub async fn check(&self) -> Result<(), SecretError> {
        self.source.value(&self.setting).await.map(|_| ())
    }

    /// Returns whether the credential may be sent to a URL.
    pub fn may_go_to(&self, url: &Url) -> bool {
        self.origin.is_some() && self.origin == Origin::of(url)
    }

    /// Returns the value, trimmed, for a request to `url`. Fails if `url` has another origin.
    pub async fn text_for(&self, url: &Url) -> Result<Zeroizing<String>, SecretError> {
        let unavailable = |detail: String| SecretError::Unavailable { detail };
        if !self.may_go_to(url) {
            return Err(unavailable(match &self.origin {
                Some(origin) => {
                    format!(
                        "`{}` is only for {origin}, and is not sent anywhere else",
                        self.setting
                    )
                }
                None => format!("`{}` is not bound to an address", self.setting),
            }));
        }
        let value = self.source.value(&self.setting).await?;
        let text = value.expose_text().map(str::trim).unwrap_or_default();
        if text.is_empty() || text.contains(|letter: char| letter.is_control()) {
            return Err(unavailable(format!(
                "the value of `{}` is empty or contains control characters",
                self.setting
            )));
        }
        Ok(Zeroizing::new(text.to_owned()))
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("setting", &self.setting)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// A source with one known value.
#[derive(Debug)]
struct FixedValue(Arc<SecretValue>);

impl CredentialSource for FixedValue {
    fn value<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>> {
        Box::pin(std::future::ready(Ok(Arc::clone(&self.0))))
    }
}

/// Returns whether a response with this `Content-Encoding` is not compressed, so that it can be read and masked.
/// lango's requests never ask for compression.
pub fn is_plain_encoding(header: Option<&[u8]>) -> bool {
    header.is_none_or(|value| {
        let value = value.trim_ascii();
        value.is_empty() || value.eq_ignore_ascii_case(b"identity")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn poll_ready<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("the future is not ready"),
        }
    }

    #[test]
    fn a_credential_is_resolved_only_for_its_origin() {
        let masks = Masks::default();
        let url = |text: &str| Url::parse(text).unwrap();
        let key = Credential::fixed("KEY", SecretValue::new(" canary-value\n"), &masks);
        assert!(poll_ready(key.text_for(&url("https://a.example"))).is_err());
        let key = key.bound_to(&url("https://a.example/v1"));
        let text = poll_ready(key.text_for(&url("https://a.example/v1/chat"))).unwrap();
        assert_eq!(*text, "canary-value");
        for other in [
            "http://a.example/v1",
            "https://a.example:8443/v1",
            "https://b.example/v1",
            "https://a.example.evil.example/v1",
            "https://a.example@b.example/",
        ] {
            let error = poll_ready(key.text_for(&url(other)))
                .unwrap_err()
                .to_string();
            assert!(error.contains("https://a.example"), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
        assert!(!format!("{key:?}").contains("canary"));
        assert_eq!(masks.mask_text("x canary-value"), "x [secret KEY]");
    }

    #[test]
    fn a_value_that_is_not_valid_in_a_header_is_refused() {
        let url = Url::parse("https://a.example").unwrap();
        for value in ["", "  ", "a\nb", "a\u{7f}b"] {
            let key = Credential::fixed("KEY", SecretValue::new(value), &Masks::default());
            assert!(
                poll_ready(key.bound_to(&url).text_for(&url)).is_err(),
                "{value:?}"
            );
        }
    }
}
