//! Where a PostgreSQL server is and how it is spoken to, from the address that a person wrote.
//!
//! The address holds a password as a rule. It is in no error, and what is shown of it elsewhere has none.

use super::password::Surroundings;
use super::tls::{Tls, Trust};
use lango_core::StoreError;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);

/// How long the other side may leave what was sent unacknowledged before the connection is given up.
const SILENCE: Duration = Duration::from_secs(15);

/// A server, a database on it, and how to get there.
#[derive(Clone)]
pub(crate) struct Address {
    /// What a connection is made with.
    pub config: Config,
    /// How a connection is encrypted.
    pub tls: Tls,
    /// What errors call it.
    pub place: String,
    /// The address as it was written, without a password.
    pub shown: String,
    /// What to tell somebody who is not let in, if anything.
    pub hint: Option<String>,
}

/// An address as it can be shown: with its user, without its password.
pub fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return "postgres://".to_owned();
    };
    // The last one: a password that was not spelled as it should be may have others.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (user.split(':').next(), rest),
        None => (None, rest),
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let pairs = query.into_iter().flat_map(|query| query.split('&'));
    let pairs = pairs.filter(|pair| !pair.contains("password="));
    let query = pairs.collect::<Vec<_>>().join("&");
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{user}{place}{mark}{query}")
}

impl Address {
    /// Reads an address such as `postgres://user:password@host:5432/database?sslmode=verify-full`.
    pub(crate) fn parse(address: &str) -> Result<Self, StoreError> {
        Self::parse_in(address, &Surroundings::of_process())
    }

    fn parse_in(address: &str, surroundings: &Surroundings) -> Result<Self, StoreError> {
        let shown = "postgres://…";
        let refused = |detail: String| StoreError::Unreadable {
            place: shown.to_owned(),
            detail,
        };
        let is_address = ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| address.starts_with(scheme));
        if !is_address {
            return Err(refused("an address begins with `postgres://`".to_owned()));
        }
        let (bare, security) = Security::take_from(address).map_err(refused)?;
        let misread = || {
            refused(
                "write it as postgres://user:password@host:5432/database?sslmode=verify-full; \
                 characters with a meaning in addresses are written as %40 and so on"
                    .to_owned(),
            )
        };
        // What the parser says may quote a part of the password.
        let mut config: Config = bare.parse().map_err(|_| match wrong_parameter(&bare) {
            Some(name) => refused(format!(
                "the parameter `{name}` has a value that it cannot have"
            )),
            None => misread(),
        })?;
        let hint = surroundings.complete(&mut config);
        let place = place_of(&config);
        if place.contains('@') {
            // The password had one too, and what is behind it was taken for the host.
            return Err(misread());
        }
        let (mode, trust) = security.resolve().map_err(refused)?;
        config.ssl_mode(mode);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        if config.get_application_name().is_none() {
            config.application_name("lango");
        }
        let tls = Tls::new(trust).map_err(refused)?;
        Ok(Self {
            config,
            tls,
            place,
            shown: without_password(address),
            hint,
        })
    }
}

/// What an address says about encryption, in the words that PostgreSQL's own programs use.
#[derive(Default)]
struct Security {
    mode: Option<String>,
    root: Option<String>,
}

impl Security {
    /// Takes `sslmode` and `sslrootcert` out of an address: the driver does not know all of their values.
    fn take_from(address: &str) -> Result<(String, Self), String> {
        let mut security = Self::default();
        let begin = address.find('@').unwrap_or(0);
        let Some(mark) = address[begin..].find('?') else {
            return Ok((address.to_owned(), security));
        };
        let (path, query) = (&address[..begin + mark], &address[begin + mark + 1..]);
        // Where there is another one, this may be a part of the password.
        let is_certain = !query.contains('@');
        let mut rest = Vec::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => security.mode = Some(mode.to_owned()),
                Some(("sslrootcert", path)) => security.root = Some(decoded(path)?),
                _ => {
                    let name = pair.split('=').next().unwrap_or_default();
                    if is_certain && !PARAMETERS.contains(&name) {
                        return Err(unknown_parameter(name));
                    }
                    rest.push(pair);
                }
            }
        }
        let bare = match rest.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{}", rest.join("&")),
        };
        Ok((bare, security))
    }

    fn resolve(self) -> Result<(SslMode, Trust), String> {
        let roots = match self.root.as_deref() {
            None | Some("system") => None,
            Some(path) => Some(PathBuf::from(path)),
        };
        let is_named = self.root.is_some();
        Ok(match self.mode.as_deref().unwrap_or("prefer") {
            "disable" => (SslMode::Disable, Trust::Anybody),
            "prefer" => (SslMode::Prefer, Trust::Anybody),
            // As PostgreSQL's own programs do: roots that are named are not named for nothing.
            "require" if is_named => (SslMode::Require, Trust::AnyName(roots)),
            "require" => (SslMode::Require, Trust::Anybody),
            "verify-ca" => (SslMode::Require, Trust::AnyName(roots)),
            "verify-full" => (SslMode::Require, Trust::ThisName(roots)),
            _ => {
                return Err(
                    "the parameter `sslmode` must be one of disable, prefer, require, verify-ca, verify-full"
                        .to_owned(),
                );
            }
        })
    }
}

/// What can stand after the `?` of an address beside what says how it is encrypted.
const PARAMETERS: [&str; 18] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslnegotiation",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

fn unknown_parameter(name: &str) -> String {
    let is_plain = name.len() <= 40 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let what = match is_plain && !name.is_empty() {
        true => format!("there is no parameter `{name}`"),
        false => "a parameter has no name that is known".to_owned(),
    };
    format!(
        "{what}; those that there are: sslmode, sslrootcert, {}",
        PARAMETERS.join(", ")
    )
}

/// The parameter whose value makes an address unreadable, if it is one that does.
fn wrong_parameter(address: &str) -> Option<&'static str> {
    let (_, query) = address.rsplit_once('?')?;
    let is_wrong = |pair: &&str| format!("postgres://h/d?{pair}").parse::<Config>().is_err();
    let name = query.split('&').find(is_wrong)?.split('=').next()?;
    PARAMETERS.into_iter().find(|known| *known == name)
}

/// A value of an address in plain text.
fn decoded(value: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match (byte, code) {
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| "`sslrootcert` is not the name of a file".to_owned())
}

fn place_of(config: &Config) -> String {
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let ports = config.get_ports();
        let port = ports.get(index).or(ports.first()).unwrap_or(&5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(folder) => format!("{}:{port}", folder.display()),
        }
    });
    let hosts: Vec<String> = hosts.collect();
    let database = config.get_dbname().or(config.get_user());
    format!(
        "postgres://{}/{}",
        hosts.join(","),
        database.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(address: &str) -> String {
        let refused = Address::parse(address);
        refused.err().expect("it cannot be understood").to_string()
    }

    #[test]
    fn a_place_has_neither_user_nor_password() {
        let address = "postgres://ann:s3cret@db.example:6000/lango?sslmode=disable";
        let address = Address::parse(address).unwrap();
        assert_eq!(address.place, "postgres://db.example:6000/lango");
        assert_eq!(address.config.get_password(), Some(&b"s3cret"[..]));
        assert_eq!(address.config.get_ssl_mode(), SslMode::Disable);
        let address = Address::parse("postgres://ann:s3c?sslmode=x@db/lango").unwrap();
        assert_eq!(address.config.get_password(), Some(&b"s3c?sslmode=x"[..]));
    }

    #[test]
    fn no_part_of_a_password_is_in_an_error() {
        for address in [
            "postgres://ann:p@s3cret@host/db",
            "postgres://ann:p@a/s3cret@host/db",
            "postgres://ann:s3cret@host:port/db",
            "postgres://ann:s3cret@host/db?sslmode=s3cret",
            "mysql://ann:s3cret@host/db",
            "postgres://ann:s3cret@host/db?unknown=s3cret",
        ] {
            let refusal = refusal(address);
            assert!(!refusal.contains("s3c"), "{refusal}");
        }
    }

    #[test]
    fn an_address_is_shown_with_its_user_and_without_its_password() {
        for (address, shown) in [
            (
                "postgres://ann:s3cret@db:6000/lango",
                "postgres://ann@db:6000/lango",
            ),
            (
                "postgres://ann:s3c?r/e@t@db/lango",
                "postgres://ann@db/lango",
            ),
            ("postgres://ann@db/x?password=s3cret", "postgres://ann@db/x"),
            (
                "postgres://db/x?password=s3cret&sslmode=require",
                "postgres://db/x?sslmode=require",
            ),
        ] {
            assert_eq!(without_password(address), shown);
        }
    }

    #[test]
    fn a_parameter_that_is_wrong_is_named() {
        let said = refusal("postgres://ann:s3cret@h/d?foo=bar");
        assert!(
            said.contains("`foo`") && said.contains("connect_timeout"),
            "{said}"
        );
        let said = refusal("postgres://ann:s3cret@h/d?sslmode=require&connect_timeout=soon");
        assert!(said.contains("`connect_timeout`"), "{said}");
        let said = refusal("postgres://ann:s3cret@h/d?sslmode=maybe");
        assert!(
            said.contains("`sslmode`") && said.contains("verify-full"),
            "{said}"
        );
        let said = refusal("postgres://ann:p@a?s3cret=1@h/d");
        assert!(!said.contains("s3cret"), "{said}");
    }

    #[test]
    fn whoever_is_not_named_is_the_user_of_the_surroundings() {
        let surroundings = Surroundings {
            user: Some("ann".to_owned()),
            password: Some("s3cret".to_owned()),
            file: None,
        };
        let address = Address::parse_in("postgres://h/d", &surroundings).unwrap();
        assert_eq!(address.config.get_user(), Some("ann"));
        assert_eq!(address.config.get_password(), Some(&b"s3cret"[..]));
        let address = Address::parse_in("postgres://bob:own@h/d", &surroundings).unwrap();
        assert_eq!(address.config.get_user(), Some("bob"));
        assert_eq!(address.config.get_password(), Some(&b"own"[..]));
    }

    #[test]
    fn the_mode_says_what_is_checked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let missing = "postgres://h/d?sslmode=verify-full&sslrootcert=/no/such%20file";
        assert!(refusal(missing).contains("/no/such file"));
        let empty = format!(
            "postgres://h/d?sslmode=verify-ca&sslrootcert={}",
            file.path().display()
        );
        assert!(refusal(&empty).contains("no certificate"));
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
