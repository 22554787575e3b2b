//! Discovers the authorization server of an MCP server: reads the MCP server's metadata, then the metadata of the
//! authorization server that it names.

use super::LoginError;
use super::challenge::Challenge;
use super::web::{address, get};
use crate::names::one_line;
use reqwest::Url;
use serde::Deserialize;

/// An authorization server, and the resource that it grants access to.
#[derive(Debug)]
pub(super) struct Authority {
    /// The MCP server's resource identifier, exactly as the server states it.
    pub(super) resource: String,
    /// The scopes that the MCP server supports.
    pub(super) scopes: Option<Vec<String>>,
    pub(super) metadata: Metadata,
}

/// An MCP server's protected resource metadata.
#[derive(Debug, Deserialize)]
struct Resource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

/// An authorization server's metadata.
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

/// Discovers the authorization server of the MCP server at this address.
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
                LoginError::unusable("the server does not name an authorization server")
            })?;
            (found.resource, issuer, found.scopes_supported)
        }
        // Older servers are their own authorization server.
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

/// Fetches the server's resource metadata from the address in its challenge, or else from the two well-known addresses.
async fn find_resource(
    server: &Url,
    challenge: Option<&Challenge>,
) -> Result<Option<Resource>, LoginError> {
    if let Some(url) = challenge.and_then(|challenge| challenge.resource_metadata.as_deref()) {
        return get(&address(url)?).await;
    }
    let path = server.path().trim_end_matches('/');
    for path in [
        format!("/.well-known/oauth-protected-resource{path}"),
        "/.well-known/oauth-protected-resource".to_owned(),
    ] {
        if let Some(found) = get(&at(server, &path)).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Fails unless the resource is the server's own address, or a parent of it.
fn check_resource(server: &Url, resource: &str) -> Result<(), LoginError> {
    let is_own = Url::parse(resource).is_ok_and(|resource| {
        let path = resource.path().trim_end_matches('/');
        let rest = server.path().strip_prefix(path);
        resource.origin() == server.origin()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if is_own {
        return Ok(());
    }
    Err(LoginError::unusable(format!(
        "the server claims to be `{}`, which is another address",
        one_line(resource, 200)
    )))
}

/// Fetches and checks the authorization server's metadata from its well-known addresses.
async fn find_metadata(issuer: &str) -> Result<Metadata, LoginError> {
    let url = address(issuer)?;
    let path = url.path().trim_end_matches('/').to_owned();
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    for path in paths {
        let Some(found) = get::<Metadata>(&at(&url, &path)).await? else {
            continue;
        };
        if found.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(LoginError::unusable(format!(
                "the authorization server `{}` claims to be `{}`",
                one_line(issuer, 200),
                one_line(&found.issuer, 200)
            )));
        }
        if !found
            .code_challenge_methods_supported
            .iter()
            .any(|method| method == "S256")
        {
            return Err(LoginError::unusable(format!(
                "the authorization server `{}` does not support PKCE with S256",
                one_line(issuer, 200)
            )));
        }
        return Ok(found);
    }
    Err(LoginError::unusable(format!(
        "the authorization server `{}` has no metadata",
        one_line(issuer, 200)
    )))
}

/// Returns the URL of another path on the same host.
fn at(url: &Url, path: &str) -> Url {
    let mut other = url.clone();
    other.set_path(path);
    other.set_query(None);
    other.set_fragment(None);
    other
}

/// Returns a server's address as a resource identifier: without query, fragment and trailing slash.
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
    fn a_server_may_claim_only_its_own_address() {
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
