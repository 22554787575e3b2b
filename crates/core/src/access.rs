//! Access tokens of the HTTP API. A token acts as one user, within its scopes. The database stores only digests of
//! tokens, so reading it does not give access.

use crate::{BoxFuture, StoreError, Text, Timestamp, UserId};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A permission of an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Read sessions, approvals, agents and settings.
    Read,
    /// Start and cancel turns; rename, fork and delete sessions.
    Run,
    /// Answer approvals and revoke grants.
    Approve,
}

impl Scope {
    /// All scopes, in the order in which lists show them.
    pub const ALL: [Self; 3] = [Self::Read, Self::Run, Self::Approve];

    /// Returns the name that the command line, JSON and the database use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let scope = Self::ALL.into_iter().find(|scope| scope.name() == name);
        scope.ok_or_else(|| format!("`{name}` is not a scope; the scopes are read, run, approve"))
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Returns the set of all scopes.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Returns whether the set contains a scope.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// Returns the scopes of the set, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL
            .into_iter()
            .filter(move |scope| self.contains(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(
            scopes
                .into_iter()
                .fold(0, |set, scope| set | 1 << scope as u8),
        )
    }
}

impl fmt::Display for Scopes {
    /// Writes the names with spaces between them, as the database stores them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Scope::name).collect();
        f.write_str(&names.join(" "))
    }
}

impl FromStr for Scopes {
    type Err = String;

    fn from_str(names: &str) -> Result<Self, String> {
        names.split_whitespace().map(str::parse).collect()
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Scope::name))
    }
}

/// The kind of an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// A program sends it with each request.
    Token,
    /// A browser sends it as a cookie.
    Browser,
    /// Part of a sign-in link. It can be exchanged once for a browser token.
    Link,
}

impl TokenKind {
    /// Returns the name that JSON and the database use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Browser => "browser",
            Self::Link => "link",
        }
    }
}

impl FromStr for TokenKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut kinds = [Self::Token, Self::Browser, Self::Link].into_iter();
        let kind = kinds.find(|kind| kind.name() == name);
        kind.ok_or_else(|| format!("`{name}` is not a kind of token"))
    }
}

/// An access token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccessToken {
    /// The id for listing and revoking.
    pub id: Text,
    /// The user that the token acts as.
    pub user: UserId,
    /// A label that the user chose, such as the name of a device.
    pub name: Text,
    pub kind: TokenKind,
    pub scopes: Scopes,
    pub created: Timestamp,
    /// When the token expires; `None` if it is valid until it is revoked.
    pub expires: Option<Timestamp>,
}

/// The SHA-256 digest of a token's secret.
pub type TokenDigest = [u8; 32];

/// The access tokens of all users, shared by all replicas.
pub trait TokenStore: Send + Sync {
    fn add_token(
        &self,
        token: AccessToken,
        digest: TokenDigest,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the token with this digest, unless it has expired by `now` or is a [link](TokenKind::Link).
    fn token(
        &self,
        digest: TokenDigest,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<AccessToken>, StoreError>>;

    /// Lists all tokens, including expired ones, oldest first.
    fn tokens(&self) -> BoxFuture<'_, Result<Vec<AccessToken>, StoreError>>;

    /// Deletes the token with this id. Returns whether it existed.
    fn revoke_token(&self, id: &str) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Exchanges an unexpired link for a token. The token gets the user and the scopes of the link; those in `token`
    /// are ignored. Returns the token, or `None` if the link does not exist, was already used, or has expired.
    fn redeem_link(
        &self,
        link: TokenDigest,
        token: AccessToken,
        digest: TokenDigest,
    ) -> BoxFuture<'_, Result<Option<AccessToken>, StoreError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_round_trip_through_text() {
        for names in ["", "read", "run approve", "read run approve"] {
            let scopes: Scopes = names.parse().expect("scopes");
            assert_eq!(scopes.to_string(), names);
        }
        assert!("read admin".parse::<Scopes>().is_err());
        assert!(
            !"read"
                .parse::<Scopes>()
                .expect("scopes")
                .contains(Scope::Approve)
        );
    }
}
