//! New access tokens and sign-in links.

use crate::access::digest_of;
use lango_core::{
    AccessToken, Clock, Scopes, StoreError, Text, Timestamp, TokenDigest, TokenKind, TokenStore,
    UserId,
};
use std::time::Duration;

/// How long a sign-in link is valid.
pub const LINK_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// How long a browser stays signed in.
pub const BROWSER_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// A token to create.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The user that it acts as.
    pub user: UserId,
    /// Its name, for the user.
    pub name: Text,
    /// Its kind.
    pub kind: TokenKind,
    /// What it allows.
    pub scopes: Scopes,
    /// How long it is valid. `None` means until it is revoked.
    pub lifetime: Option<Duration>,
}

/// A token with its secret, which is not stored.
#[derive(Debug, Clone)]
pub struct IssuedToken {
    /// The token.
    pub token: AccessToken,
    /// The secret, which its user sends.
    pub secret: String,
}

impl IssuedToken {
    /// Creates a token. It is valid once it is stored.
    pub fn new(new: NewToken, now: Timestamp) -> Result<Self, StoreError> {
        let lifetime = new.lifetime.map(|lifetime| lifetime.as_millis());
        let lifetime = lifetime.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX));
        let token = AccessToken {
            id: format!("k_{}", random(6)?).into(),
            user: new.user,
            name: new.name,
            kind: new.kind,
            scopes: new.scopes,
            created: now,
            expires: lifetime.map(|ms| Timestamp(now.0.saturating_add(ms))),
        };
        let secret = format!("lango_{}", random(32)?);
        Ok(Self { token, secret })
    }

    /// Returns the digest of the secret.
    pub fn digest(&self) -> TokenDigest {
        digest_of(&self.secret)
    }
}

/// Creates and stores a token.
pub async fn issue(
    tokens: &dyn TokenStore,
    clock: &dyn Clock,
    new: NewToken,
) -> Result<IssuedToken, StoreError> {
    let issued = IssuedToken::new(new, clock.now())?;
    tokens
        .add_token(issued.token.clone(), issued.digest())
        .await?;
    Ok(issued)
}

/// Returns random bytes as hexadecimal digits.
fn random(bytes: usize) -> Result<String, StoreError> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(|error| StoreError::Failed {
        detail: format!("the system gives no random numbers: {error}"),
    })?;
    Ok(base16ct::lower::encode_string(&random))
}
