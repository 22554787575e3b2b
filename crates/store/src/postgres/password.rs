//! The user and the password, where the address has none: as PostgreSQL's own programs do, from `PGUSER`, `PGPASSWORD` and the
//! password file.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Number of bytes of a password file that are read.
const LARGEST: u64 = 1 << 20;

/// The usual folders of PostgreSQL's socket; a password file calls them `localhost`.
const USUAL_SOCKETS: [&str; 3] = ["/tmp", "/run/postgresql", "/var/run/postgresql"];

/// The settings of the process's environment.
#[derive(Debug, Clone, Default)]
pub(super) struct Environment {
    pub user: Option<String>,
    pub password: Option<String>,
    /// The password file, which may not exist.
    pub file: Option<PathBuf>,
}

impl Environment {
    pub(super) fn of_process() -> Self {
        let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let named = text("PGPASSFILE").map(PathBuf::from);
        Self {
            user: text("PGUSER").or_else(|| whoami::username().ok()),
            password: text("PGPASSWORD"),
            file: named.or_else(|| text("HOME").map(|home| Path::new(&home).join(".pgpass"))),
        }
    }

    /// Adds the user and the password, if they are missing. Returns why there is no password, for the error that the server rejects
    /// the connection.
    pub(super) fn complete(&self, config: &mut Config) -> Option<String> {
        if let (None, Some(user)) = (config.get_user(), &self.user) {
            config.user(user);
        }
        if config.get_password().is_some() {
            return None;
        }
        let password = match (&self.password, &self.file) {
            (Some(password), _) => Ok(Some(password.clone().into_bytes())),
            (None, Some(file)) => from_file(file, config),
            (None, None) => Ok(None),
        };
        match password {
            Ok(Some(password)) => {
                config.password(password);
                None
            }
            Ok(None) => Some(
                "no password is in the address, in PGPASSWORD or in the password file".to_owned(),
            ),
            Err(hint) => Some(hint),
        }
    }
}

/// Reads the password for this server, database and user from a regular file that only its owner can read.
fn from_file(file: &Path, config: &Config) -> Result<Option<Vec<u8>>, String> {
    let Ok(about) = fs::metadata(file) else {
        return Ok(None);
    };
    let shown = file.display();
    if !about.is_file() {
        return Err(format!(
            "the password file `{shown}` is not used: it is not a regular file"
        ));
    }
    if about.permissions().mode() & 0o077 != 0 {
        return Err(format!(
            "the password file `{shown}` is not used, since others can read it; `chmod 600 {shown}` fixes that"
        ));
    }
    let mut text = Vec::new();
    let read = File::open(file).and_then(|file| file.take(LARGEST).read_to_end(&mut text));
    read.map_err(|error| format!("the password file `{shown}` cannot be read: {error}"))?;
    Ok(look_up(&text, &wanted(config)))
}

/// Returns the host, port, database and user that a line must have.
fn wanted(config: &Config) -> [String; 4] {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(folder))
            if !USUAL_SOCKETS
                .iter()
                .any(|usual| folder.as_os_str() == *usual) =>
        {
            folder.display().to_string()
        }
        _ => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    [host, port.to_string(), database.to_owned(), user.to_owned()]
}

/// Returns the password of the first line that matches.
fn look_up(text: &[u8], wanted: &[String; 4]) -> Option<Vec<u8>> {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.find_map(|line| {
        let mut rest = line.strip_suffix(b"\r").unwrap_or(line);
        if rest.starts_with(b"#") {
            return None;
        }
        for value in wanted {
            if let Some(after) = rest.strip_prefix(b"*:") {
                rest = after;
                continue;
            }
            let (field, after) = next_field(rest);
            rest = after.filter(|_| field == value.as_bytes())?;
        }
        Some(next_field(rest).0)
    })
}

/// Splits a line at the first colon without a backslash before it. Returns the field without backslashes, and the rest if there
/// is a colon.
fn next_field(line: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    let mut field = Vec::new();
    let mut rest = line;
    while let Some((mut byte, mut after)) = rest.split_first() {
        match (byte, after.split_first()) {
            (b':', _) => return (field, Some(after)),
            (b'\\', Some(escaped)) => (byte, after) = escaped,
            _ => {}
        }
        field.push(*byte);
        rest = after;
    }
    (field, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, address: &str) -> Option<String> {
        let config: Config = address.parse().unwrap();
        let password = look_up(text.as_bytes(), &wanted(&config));
        password.map(|password| String::from_utf8(password).unwrap())
    }

    #[test]
    fn the_first_line_that_matches_has_the_password() {
        let text = "# db:5432:lango:ann:no\ndb:5432:other:ann:no\ndb:5433:lango:ann:no\r\n\
                    db:5432:lango:bob:no\ndb:5432:lango:ann:yes\r\n*:*:*:*:late\n";
        for (text, address, password) in [
            (text, "ann@db/lango", Some("yes")),
            (text, "ann@db:5433/lango", Some("no")),
            (text, "eve@elsewhere/x", Some("late")),
            ("db:5432:lango:ann", "ann@db/lango", None),
            ("db:5432:ann:ann:own", "ann@db", Some("own")),
            ("d:*:*:*:no", "ann@db/lango", None),
            ("dbx:*:*:*:no", "ann@db/lango", None),
        ] {
            let found = found(text, &format!("postgres://{address}"));
            assert_eq!(found.as_deref(), password, "{address}");
        }
    }

    #[test]
    fn colons_and_backslashes_are_escaped_and_sockets_have_names() {
        let text = "db:5432:a\\:b:c\\\\d:p\\:q\\\\r:rest";
        let address = "postgres://c%5Cd@db/a%3Ab";
        assert_eq!(found(text, address).unwrap(), "p:q\\r");
        let socket = "postgres://ann@%2Fvar%2Frun%2Fpostgresql/lango";
        assert_eq!(found("localhost:5432:lango:ann:s", socket).unwrap(), "s");
        let socket = "postgres://ann@%2Fsrv%2Fpg/lango";
        assert_eq!(found("/srv/pg:5432:lango:ann:s", socket).unwrap(), "s");
    }

    #[test]
    fn a_file_that_others_can_read_is_not_used_and_the_hint_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pass");
        fs::write(&path, "*:*:*:*:s3cret\n").unwrap();
        let environment = Environment {
            user: Some("ann".to_owned()),
            password: None,
            file: Some(path.clone()),
        };
        let complete = |environment: &Environment| {
            let mut config: Config = "postgres://db/lango".parse().unwrap();
            let hint = environment.complete(&mut config);
            assert_eq!(config.get_user(), Some("ann"));
            (config.get_password().map(<[u8]>::to_vec), hint)
        };
        let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o640);
        let (password, hint) = complete(&environment);
        assert_eq!(password, None);
        let hint = hint.unwrap();
        assert!(
            hint.contains("chmod 600") && !hint.contains("s3cret"),
            "{hint}"
        );
        set_mode(0o600);
        assert_eq!(complete(&environment), (Some(b"s3cret".to_vec()), None));
        let named = Environment {
            password: Some("first".to_owned()),
            ..environment
        };
        assert_eq!(complete(&named), (Some(b"first".to_vec()), None));
    }
}
