//! Tests of the API's access tokens, on every database.

use crate::ROOT;
use lango_core::{
    AccessToken, Scope, Scopes, Timestamp, TokenDigest, TokenKind, TokenStore, UserId,
};
use lango_store::Store;
use lango_testkit::postgres;

macro_rules! over_every_store {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() {
                super::$name(&lango_store::Store::in_memory()).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                let address = format!("sqlite:{}", folder.path().join("lango.db").display());
                super::$name(&super::open(&address)).await;
            })+
        }
        mod postgresql {
            $(#[tokio::test] async fn $name() {
                super::$name(&super::open(&super::postgres::fresh_schema())).await;
            })+
        }
    };
}

over_every_store!(
    a_token_is_found_by_its_digest_until_it_is_revoked,
    an_expired_token_is_not_found,
    a_link_is_not_a_token_and_can_be_redeemed_once,
    an_expired_link_is_not_redeemed,
    only_one_of_many_concurrent_redemptions_of_a_link_succeeds,
);

fn open(address: &str) -> Store {
    Store::at(address, ROOT.into()).unwrap()
}

fn token(id: &str, kind: TokenKind, expires: Option<u64>) -> AccessToken {
    AccessToken {
        id: id.into(),
        user: UserId::from("ann"),
        name: "laptop".into(),
        kind,
        scopes: [Scope::Read, Scope::Approve].into_iter().collect(),
        created: Timestamp(1000),
        expires: expires.map(Timestamp),
    }
}

fn digest(byte: u8) -> TokenDigest {
    [byte; 32]
}

async fn a_token_is_found_by_its_digest_until_it_is_revoked(store: &Store) {
    let added = token("k_1", TokenKind::Token, None);
    store.add_token(added.clone(), digest(1)).await.unwrap();
    let found = |byte| store.token(digest(byte), Timestamp(2000));
    assert_eq!(found(1).await.unwrap().as_ref(), Some(&added));
    assert_eq!(found(2).await.unwrap(), None);
    assert_eq!(store.tokens().await.unwrap(), [added]);
    assert!(store.revoke_token("k_1").await.unwrap());
    assert!(!store.revoke_token("k_1").await.unwrap());
    assert_eq!(found(1).await.unwrap(), None);
}

async fn an_expired_token_is_not_found(store: &Store) {
    let added = token("k_1", TokenKind::Browser, Some(5000));
    store.add_token(added, digest(1)).await.unwrap();
    let found = |now| store.token(digest(1), Timestamp(now));
    assert!(found(4999).await.unwrap().is_some());
    assert!(found(5000).await.unwrap().is_none());
}

async fn a_link_is_not_a_token_and_can_be_redeemed_once(store: &Store) {
    let link = token("k_link", TokenKind::Link, Some(5000));
    store.add_token(link.clone(), digest(1)).await.unwrap();
    let found = store.token(digest(1), Timestamp(1000)).await.unwrap();
    assert_eq!(found, None, "a link does not authenticate requests");
    let new = AccessToken {
        user: UserId::from("mallory"),
        scopes: Scopes::all(),
        ..token("k_new", TokenKind::Browser, Some(9000))
    };
    let redeemed = store.redeem_link(digest(1), new.clone(), digest(2)).await;
    let redeemed = redeemed.unwrap().unwrap();
    assert_eq!((redeemed.user, redeemed.scopes), (link.user, link.scopes));
    let found = store.token(digest(2), Timestamp(1000)).await.unwrap();
    assert_eq!(found.unwrap().id, new.id);
    let again = AccessToken {
        id: "k_again".into(),
        ..new
    };
    let redeemed = store.redeem_link(digest(1), again, digest(3)).await;
    assert_eq!(redeemed.unwrap(), None);
    assert_eq!(store.tokens().await.unwrap().len(), 1);
}

async fn an_expired_link_is_not_redeemed(store: &Store) {
    let link = token("k_link", TokenKind::Link, Some(1000));
    store.add_token(link, digest(1)).await.unwrap();
    let new = token("k_new", TokenKind::Browser, None);
    let redeemed = store.redeem_link(digest(1), new, digest(2)).await;
    assert_eq!(redeemed.unwrap(), None);
}

async fn only_one_of_many_concurrent_redemptions_of_a_link_succeeds(store: &Store) {
    let link = token("k_link", TokenKind::Link, Some(5000));
    store.add_token(link, digest(1)).await.unwrap();
    let redeem = (2..10).map(|number| {
        let new = token(&format!("k_{number}"), TokenKind::Browser, None);
        store.redeem_link(digest(1), new, digest(number))
    });
    let redeemed = futures_util::future::join_all(redeem).await;
    let succeeded = redeemed
        .into_iter()
        .filter(|one| matches!(one, Ok(Some(_))));
    assert_eq!(succeeded.count(), 1);
}
