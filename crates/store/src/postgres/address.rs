//! Parses the address of a PostgreSQL database.
//!
//! An address usually contains a password, which must not appear in any error or output.

use super::password::complete;
use super::tls::Tls;
use lango_core::StoreError;
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// Default parameters, which an address may override. `tcp_user_timeout` is the number of seconds that sent data may remain
/// unacknowledged before the connection is closed.
const DEFAULTS: &str = "connect_timeout=5&tcp_user_timeout=15&application_name=lango";

/// The supported parameters of an address, except `sslmode` and `sslrootcert`.
const PARAMETERS: &str = "application_name, channel_binding, connect_timeout, dbname, host, hostaddr, keepalives, \
    keepalives_idle, keepalives_interval, keepalives_retries, load_balance_hosts, options, password, port, sslnegotiation, \
    target_session_attrs, tcp_user_timeout, user";

const INVALID_ADDRESS: &str = "write it as postgres://user:password@host:5432/database?sslmode=verify-full; \
    percent-encode special characters, such as %40 for @";

/// A parsed address of a database.
#[derive(Clone)]
pub(crate) struct Address {
    pub config: Config,
    pub tls: Tls,
    /// The name of the database in errors.
    pub place: String,
    /// The address without its password.
    pub shown: String,
    /// The reason why no password was found, for errors.
    pub hint: Option<String>,
}

/// Removes the password from an address.
pub fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return "postgres://".to_owned();
    };
    // A password that was not percent-encoded may contain other `@`, so this takes the last one.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (user.split(':').next(), rest),
        None => (None, rest),
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let pairs = query.split('&').filter(|pair| !pair.contains("password="));
    let query = pairs.collect::<Vec<_>>().join("&");
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{user}{place}{mark}{query}")
}

impl Address {
    /// Parses an address such as `postgres://user:password@host:5432/database?sslmode=verify-full`.
    pub(crate) fn parse(address: &str) -> Result<Self, StoreError> {
        Self::try_parse(address).map_err(|detail| StoreError::Unreadable {
            place: "postgres://…".to_owned(),
            detail,
        })
    }

    fn try_parse(address: &str) -> Result<Self, String> {
        if !address.starts_with("postgres://") && !address.starts_with("postgresql://") {
            return Err("an address starts with `postgres://`".to_owned());
        }
        let (bare, mode, tls) = take_tls_parameters(address)?;
        // The parser's own error may quote part of the password, so it is not used.
        let mut config: Config = bare
            .parse()
            .map_err(|_| wrong_parameter(&bare).unwrap_or_else(|| INVALID_ADDRESS.to_owned()))?;
        let hint = complete(&mut config, |name| {
            std::env::var(name).ok().filter(|text| !text.is_empty())
        });
        let place = place_of(&config);
        if place.contains('@') {
            // The password contains an `@`, and the text after it was parsed as the host.
            return Err(INVALID_ADDRESS.to_owned());
        }
        config.ssl_mode(mode);
        Ok(Self {
            config,
            tls,
            place,
            shown: without_password(address),
            hint,
        })
    }
}

/// Extracts `sslmode` and `sslrootcert` from an address, because the driver does not support all their values, and adds the
/// default parameters to it.
fn take_tls_parameters(address: &str) -> Result<(String, SslMode, Tls), String> {
    let begin = address.find('@').unwrap_or(0);
    let mark = address[begin..].find('?').map(|mark| begin + mark);
    let (path, query) = address.split_at(mark.unwrap_or(address.len()));
    let (mut mode, mut root, mut others) = ("prefer", None, vec![DEFAULTS]);
    for pair in query.trim_start_matches('?').split('&') {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("sslmode", value) => mode = value,
            ("sslrootcert", value) => root = Some(percent_decode_str(value).decode_utf8_lossy()),
            _ => others.push(pair),
        }
    }
    let (mode, tls) = Tls::new(mode, root.as_deref())?;
    Ok((format!("{path}?{}", others.join("&")), mode, tls))
}

/// Describes the parameter that makes an address invalid. Returns `None` if its name may be part of the password.
fn wrong_parameter(address: &str) -> Option<String> {
    let (_, query) = address.rsplit_once('?')?;
    let is_wrong = |pair: &&str| format!("postgres://h/d?{pair}").parse::<Config>().is_err();
    let name = query.split('&').find(is_wrong)?.split('=').next()?;
    if PARAMETERS.split(", ").any(|known| known == name) {
        return Some(format!("the parameter `{name}` has an invalid value"));
    }
    let is_name = name.len() <= 40 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && !query.contains('@')).then(|| {
        format!(
            "there is no parameter `{name}`; the parameters are: sslmode, sslrootcert, {PARAMETERS}"
        )
    })
}

fn place_of(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let port = ports.get(index).or(ports.first()).unwrap_or(&5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(folder) => format!("{}:{port}", folder.display()),
        }
    });
    let hosts = hosts.collect::<Vec<_>>().join(",");
    let database = config.get_dbname().or(config.get_user());
    format!("postgres://{hosts}/{}", database.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(address: &str) -> String {
        let refused = Address::parse(address);
        refused.err().expect("it is invalid").to_string()
    }

    #[test]
    fn the_place_has_neither_user_nor_password() {
        let address = "postgres://ann:s3cret@db.example:6000/lango?sslmode=disable";
        let address = Address::parse(address).unwrap();
        assert_eq!(address.place, "postgres://db.example:6000/lango");
        assert_eq!(address.config.get_password(), Some(&b"s3cret"[..]));
        let address = Address::parse("postgres://ann:s3c?sslmode=x@db/lango").unwrap();
        assert_eq!(address.config.get_password(), Some(&b"s3c?sslmode=x"[..]));
    }

    #[test]
    fn an_address_is_shown_with_its_user_and_without_its_password() {
        for (address, shown) in [
            ("ann:s3cret@db:6000/lango", "ann@db:6000/lango"),
            ("ann:s3c?r/e@t@db/lango", "ann@db/lango"),
            ("ann@db/x?password=s3cret", "ann@db/x"),
            ("db/x?password=s3cret&port=1", "db/x?port=1"),
        ] {
            let [address, shown] = [address, shown].map(|rest| format!("postgres://{rest}"));
            assert_eq!(without_password(&address), shown);
        }
    }

    #[test]
    fn an_error_names_the_wrong_parameter_and_contains_no_part_of_a_password() {
        for (address, named) in [
            ("postgres://ann:p@s3cret@host/db", ""),
            ("postgres://ann:p@a/s3cret@host/db", ""),
            ("postgres://ann:p@a?s3cret=1@h/d", ""),
            ("postgres://ann:s3cret@host:port/db", ""),
            ("mysql://ann:s3cret@host/db", ""),
            (
                "postgres://ann:s3cret@h/d?foo=s3cret",
                "`foo`; the parameters are: sslmode",
            ),
            (
                "postgres://ann:s3cret@h/d?sslmode=s3cret",
                "`sslmode` must be one of disable",
            ),
            (
                "postgres://ann:s3cret@h/d?sslmode=require&port=s3cret",
                "`port` has an invalid",
            ),
        ] {
            let error = refusal(address);
            assert!(!error.contains("s3c") && error.contains(named), "{error}");
        }
    }

    #[test]
    fn sslmode_selects_what_is_verified() {
        let missing = "postgres://h/d?sslmode=verify-full&sslrootcert=/no/such%20file";
        assert!(refusal(missing).contains("/no/such file"));
        let empty = "postgres://h/d?sslmode=verify-ca&sslrootcert=/dev/null";
        assert!(refusal(empty).contains("no certificate"));
        for (mode, expected) in [
            ("", SslMode::Prefer),
            ("?sslmode=disable", SslMode::Disable),
            ("?sslmode=require", SslMode::Require),
        ] {
            let address = Address::parse(&format!("postgres://h/d{mode}")).unwrap();
            assert_eq!(address.config.get_ssl_mode(), expected, "{mode}");
        }
    }
}
