//! Stores the access tokens of the HTTP API.

use crate::StoreFuture;
use crate::backend::{BackendError, Result, Row, Sql, sql, statements, values};
use crate::decode::check_user;
use crate::store::Store;
use lango_core::{AccessToken, Timestamp, TokenDigest, TokenStore};
use std::borrow::Cow;
use std::str::FromStr;

impl TokenStore for Store {
    fn add_token(&self, token: AccessToken, digest: TokenDigest) -> StoreFuture<'_, ()> {
        let args = (token, digest);
        self.backend.write_autocommit(args, |tx, (token, digest)| {
            Box::pin(async move {
                check_user(&token.user, "an access token")?;
                let (scopes, kind) = (token.scopes.to_string(), token.kind.name());
                let values = values![
                    token.id,
                    token.user,
                    token.name,
                    kind,
                    scopes,
                    digest[..],
                    token.created,
                    token.expires
                ];
                tx.execute(ADD, values).await.map(drop)
            })
        })
    }

    fn token(&self, digest: TokenDigest, now: Timestamp) -> StoreFuture<'_, Option<AccessToken>> {
        self.backend.lookup((digest, now), |tx, (digest, now)| {
            Box::pin(async move {
                let values = values![digest[..], now];
                tx.query_opt(TOKEN, values, read_token).await
            })
        })
    }

    fn tokens(&self) -> StoreFuture<'_, Vec<AccessToken>> {
        self.backend.query(TOKENS, &[], read_token)
    }

    fn revoke_token(&self, id: &str) -> StoreFuture<'_, bool> {
        let deleted = self.backend.execute(DELETE, values![id]);
        Box::pin(async move { Ok(deleted.await? > 0) })
    }

    fn redeem_link(
        &self,
        link: TokenDigest,
        token: AccessToken,
        digest: TokenDigest,
    ) -> StoreFuture<'_, Option<AccessToken>> {
        let args = (link, token, digest);
        self.backend
            .write_idempotent(args, |tx, (link, new, digest)| {
                Box::pin(async move {
                    let kind = new.kind.name();
                    let values = values![
                        link[..],
                        new.created,
                        new.id,
                        new.name,
                        kind,
                        digest[..],
                        new.expires
                    ];
                    tx.execute(ADD_FOR_LINK, values).await?;
                    tx.execute(DELETE_LINK, values![link[..]]).await?;
                    // If an earlier attempt was committed, the link is deleted and the token exists.
                    let values = values![digest[..], new.created];
                    tx.query_opt(TOKEN, values, read_token).await
                })
            })
    }
}

fn read_token(row: Row<'_>) -> Result<AccessToken> {
    Ok(AccessToken {
        id: row.get(0)?,
        user: row.get(1)?,
        name: row.get(2)?,
        kind: parsed(row, 3)?,
        scopes: parsed(row, 4)?,
        created: row.get(5)?,
        expires: row.get(6)?,
    })
}

fn parsed<T: FromStr<Err = String>>(row: Row<'_>, column: usize) -> Result<T> {
    let text: Cow<'_, str> = row.get(column)?;
    text.parse().map_err(BackendError::other)
}

/// Selects all tokens. They are few, so sorting is cheap.
const TOKENS: Sql = sql!(
    r#"SELECT id, "user", name, kind, scopes, created, expires FROM access_tokens ORDER BY created, id"#
);

statements! {
    ADD: r#"INSERT INTO access_tokens (id, "user", name, kind, scopes, digest, created, expires)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"#;

    TOKEN: r#"SELECT id, "user", name, kind, scopes, created, expires FROM access_tokens
      WHERE digest = $1 AND kind <> 'link' AND (expires IS NULL OR expires > $2)"#;

    DELETE: "DELETE FROM access_tokens WHERE id = $1";

    /// Adds a token with the user and scopes of an unexpired link. PostgreSQL locks the link, so that two concurrent requests
    /// cannot both redeem it.
    ADD_FOR_LINK: r#"INSERT INTO access_tokens (id, "user", name, kind, scopes, digest, created, expires)
     SELECT $3, link."user", $4, $5, link.scopes, $6, $2, $7
       FROM (SELECT "user", scopes FROM access_tokens
              WHERE digest = $1 AND kind = 'link' AND expires > $2 /*postgres FOR UPDATE*/) AS link"#;

    DELETE_LINK: "DELETE FROM access_tokens WHERE digest = $1 AND kind = 'link'";
}
