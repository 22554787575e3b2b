//! Credentials of lango's own requests: handles that are resolved when a request is built.

use crate::binding::Origin;
use crate::mask::Masks;
use crate::source::SecretError;
use crate::value::SecretValue;
use lango_core::{BoxFuture, Text};
use std::fmt;
use std::sync::Arc;
use url::Url;
use zeroize::Zeroizing;

/// The values that the configuration names.
pub trait CredentialSource: fmt::Debug + Send + Sync {
    /// Returns the value of a setting, which is the name of an environment variable or `secret:NAME`, and masks it from
    /// now on.
    fn value<'a>(
        &'a self,
        setting: &'a str,
    ) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>>;
}

/// A key or token of the configuration. It holds no value, and gives it out for one origin only.
#[derive(Clone)]
pub struct Credential {
    source: Arc<dyn CredentialSource>,
    setting: Text,
    origin: Option<Origin>,
}

impl Credential {
    /// Creates a handle for a setting. It can be used after [`Self::bound_to`].
    pub fn new(source: Arc<dyn CredentialSource>, setting: &str) -> Self {
        Self {
            source,
            setting: setting.into(),
            origin: None,
        }
    }

    /// Creates a handle for a value that is known already, and masks it.
    pub fn fixed(setting: &str, value: SecretValue, masks: &Masks) -> Self {
        masks.add(setting, &value);
        Self::new(Arc::new(FixedValue(Arc::new(value))), setting)
    }

    /// Restricts it to the origin of a URL.
    #[must_use]
    pub fn bound_to(self, url: &Url) -> Self {
        Self {
            origin: Origin::of(url),
            ..self
        }
    }

    /// Returns the setting: the name of a variable, or `secret:NAME`.
    pub fn setting(&self) -> &str {
        &self.setting
    }

    /// Returns whether it may be sent to a URL.
    pub fn may_go_to(&self, url: &Url) -> bool {
        self.origin.is_some() && self.origin == Origin::of(url)
    }

    /// Returns the text for a request to `url`, without spaces around it. Fails if `url` has another origin.
    pub async fn text_for(&self, url: &Url) -> Result<Zeroizing<String>, SecretError> {
        let unavailable = |detail: String| SecretError::Unavailable { detail };
        if !self.may_go_to(url) {
            return Err(unavailable(match &self.origin {
                Some(origin) => {
                    format!(
                        "`{}` is for {origin}, and is not sent elsewhere",
                        self.setting
                    )
                }
                None => format!("`{}` is for no address", self.setting),
            }));
        }
        let value = self.source.value(&self.setting).await?;
        let text = value.expose_text().map(str::trim).unwrap_or_default();
        if text.is_empty() || text.contains(|letter: char| letter.is_control()) {
            return Err(unavailable(format!(
                "`{}` has characters that no key has, or none at all",
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

/// A value that is known already.
#[derive(Debug)]
struct FixedValue(Arc<SecretValue>);

impl CredentialSource for FixedValue {
    fn value<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Arc<SecretValue>, SecretError>> {
        Box::pin(std::future::ready(Ok(Arc::clone(&self.0))))
    }
}

/// Returns whether a response with this `Content-Encoding` can be read and masked as it is. lango's own requests ask for no
/// other encoding.
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

    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn a_credential_goes_to_its_origin_only() {
        let masks = Masks::default();
        let url = |text: &str| Url::parse(text).unwrap();
        let key = Credential::fixed("KEY", SecretValue::new(" canary-value\n"), &masks);
        assert!(now(key.text_for(&url("https://a.example"))).is_err());
        let key = key.bound_to(&url("https://a.example/v1"));
        let text = now(key.text_for(&url("https://a.example/v1/chat"))).unwrap();
        assert_eq!(*text, "canary-value");
        for other in [
            "http://a.example/v1",
            "https://a.example:8443/v1",
            "https://b.example/v1",
            "https://a.example.evil.example/v1",
            "https://a.example@b.example/",
        ] {
            let error = now(key.text_for(&url(other))).unwrap_err().to_string();
            assert!(error.contains("https://a.example"), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
        assert!(!format!("{key:?}").contains("canary"));
        assert_eq!(masks.mask_text("x canary-value"), "x [secret KEY]");
    }

    #[test]
    fn a_value_that_no_header_can_hold_is_refused() {
        let url = Url::parse("https://a.example").unwrap();
        for value in ["", "  ", "a\nb", "a\u{7f}b"] {
            let key = Credential::fixed("KEY", SecretValue::new(value), &Masks::default());
            assert!(now(key.bound_to(&url).text_for(&url)).is_err(), "{value:?}");
        }
    }
}
