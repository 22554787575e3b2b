//! Who grants access to a server, and where: the server's own word first, then the authority's.

use super::LoginError;
use super::challenge::Challenge;
use super::web::{address, get};
use crate::names::line;
use reqwest::Url;
use serde::Deserialize;

/// Who grants access, and to what.
#[derive(Debug)]
pub(super) struct Authority {
    /// What the server is called there, letter by letter as it says itself.
    pub(super) resource: String,
    /// What it says can be asked for.
    pub(super) scopes: Option<Vec<String>>,
    pub(super) metadata: Metadata,
}

/// What a server says of itself.
#[derive(Debug, Deserialize)]
struct Resource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

/// What an authority says of itself.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

/// Finds out who grants access to the server at this address.
pub(super) async fn discover(
    server: &str,
    challenge: Option<&Challenge>,
) -> Result<Authority, LoginError> {
    let server = address(server)?;
    let found = find_resource(&server, challenge).await?;
    let (resource, issuer, scopes) = match found {
        Some(found) => {
            check_resource(&server, &found.resource)?;
            let issuer = found.authorization_servers.into_iter().next();
            let issuer = issuer.ok_or_else(|| {
                LoginError::unusable("the server does not say who grants access to it")
            })?;
            (found.resource, issuer, found.scopes_supported)
        }
        // Older servers grant access themselves.
        None => (
            canonical(&server),
            server.origin().ascii_serialization(),
            None,
        ),
    };
    let metadata = find_metadata(&issuer).await?;
    Ok(Authority {
        resource,
        scopes,
        metadata,
    })
}

/// The description of the server: where it says itself, or else at the two places where it belongs.
async fn find_resource(
    server: &Url,
    challenge: Option<&Challenge>,
) -> Result<Option<Resource>, LoginError> {
    if let Some(place) = challenge.and_then(|challenge| challenge.resource_metadata.as_deref()) {
        return get(&address(place)?).await;
    }
    let path = server.path().trim_end_matches('/');
    for place in [
        format!("/.well-known/oauth-protected-resource{path}"),
        "/.well-known/oauth-protected-resource".to_owned(),
    ] {
        if let Some(found) = get(&at(server, &place)).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// A server may speak for its own address, and for no other.
fn check_resource(server: &Url, resource: &str) -> Result<(), LoginError> {
    let is_own = Url::parse(resource).is_ok_and(|resource| {
        let path = resource.path().trim_end_matches('/');
        let rest = server.path().strip_prefix(path);
        resource.origin() == server.origin()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    match is_own {
        true => Ok(()),
        false => Err(LoginError::unusable(format!(
            "the server says that it is `{}`, which it is not",
            line(resource, 200)
        ))),
    }
}

/// What the authority says of itself, at the places where that belongs.
async fn find_metadata(issuer: &str) -> Result<Metadata, LoginError> {
    let url = address(issuer)?;
    let path = url.path().trim_end_matches('/').to_owned();
    let mut places = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{path}/.well-known/openid-configuration"));
    }
    for place in places {
        let Some(found) = get::<Metadata>(&at(&url, &place)).await? else {
            continue;
        };
        if found.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(LoginError::unusable(format!(
                "`{}` says that it is `{}`",
                line(issuer, 200),
                line(&found.issuer, 200)
            )));
        }
        if !found
            .code_challenge_methods_supported
            .iter()
            .any(|method| method == "S256")
        {
            return Err(LoginError::unusable(format!(
                "`{}` does not know PKCE with S256",
                line(issuer, 200)
            )));
        }
        return Ok(found);
    }
    Err(LoginError::unusable(format!(
        "`{}` does not describe itself",
        line(issuer, 200)
    )))
}

/// Another place on the same host.
fn at(url: &Url, path: &str) -> Url {
    let mut other = url.clone();
    other.set_path(path);
    other.set_query(None);
    other.set_fragment(None);
    other
}

/// An address as it stands for a server: without what follows its path, and without a slash that nobody wrote.
fn canonical(url: &Url) -> String {
    at(url, url.path())
        .as_str()
        .trim_end_matches('/')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_speaks_for_its_own_address_only() {
        let server = Url::parse("https://example.com/a/mcp").unwrap();
        for own in [
            "https://example.com/a/mcp",
            "https://example.com/a",
            "https://example.com",
            "https://example.com/a/mcp/",
        ] {
            assert!(check_resource(&server, own).is_ok(), "{own}");
        }
        for other in [
            "https://example.org/a/mcp",
            "http://example.com/a/mcp",
            "https://example.com/a/m",
            "https://example.com/b",
            "x",
        ] {
            assert!(check_resource(&server, other).is_err(), "{other}");
        }
    }
}
