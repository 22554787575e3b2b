//! Finds the user and password if the address has none: in `PGUSER`, `PGPASSWORD` and the password file, as PostgreSQL's own
//! programs do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The usual folders of PostgreSQL's socket. In a password file, their host is `localhost`.
const USUAL_SOCKETS: [&str; 3] = ["/tmp", "/run/postgresql", "/var/run/postgresql"];

/// Maximum size of a password file.
const MAX_FILE_BYTES: u64 = 1 << 20;

const NO_PASSWORD: &str =
    "there is no password in the address, in PGPASSWORD or in the password file";

/// Adds the user and the password if they are missing. `variable` looks up environment variables. Returns the reason why there is
/// no password, to be shown if the server rejects the connection.
pub(super) fn complete(
    config: &mut Config,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    if config.get_user().is_none()
        && let Some(user) = variable("PGUSER").or_else(|| whoami::username().ok())
    {
        config.user(user);
    }
    if config.get_password().is_some() {
        return None;
    }
    let file =
        variable("PGPASSFILE").or_else(|| variable("HOME").map(|home| format!("{home}/.pgpass")));
    let password = match (variable("PGPASSWORD"), file) {
        (Some(password), _) => Ok(Some(password.into_bytes())),
        (None, Some(file)) => from_file(&file, config),
        (None, None) => Ok(None),
    };
    match password {
        Ok(Some(password)) => {
            config.password(password);
            None
        }
        Ok(None) => Some(NO_PASSWORD.to_owned()),
        Err(problem) => Some(format!("the password file {problem}")),
    }
}

/// Reads the password for this server, database and user from a regular file that only its owner can read.
fn from_file(file: &str, config: &Config) -> Result<Option<Vec<u8>>, String> {
    let Ok(about) = fs::metadata(file) else {
        return Ok(None);
    };
    if !about.is_file() || about.len() > MAX_FILE_BYTES {
        return Err(format!(
            "`{file}` is ignored: it is not a regular file of at most 1 MiB"
        ));
    }
    if about.permissions().mode() & 0o077 != 0 {
        return Err(format!(
            "`{file}` is ignored because other users can read it; run `chmod 600 {file}`"
        ));
    }
    let text = fs::read(file).map_err(|error| format!("`{file}` cannot be read: {error}"))?;
    Ok(look_up(&text, &wanted(config)))
}

/// Returns the host, port, database and user that a line must match.
fn wanted(config: &Config) -> [String; 4] {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(folder)) if !USUAL_SOCKETS.map(Path::new).contains(&folder.as_path()) => {
            folder.display().to_string()
        }
        _ => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    [host, port.to_string(), database.to_owned(), user.to_owned()]
}

/// Returns the password of the first matching line.
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

/// Splits a line at the first unescaped colon. Returns the unescaped field, and the rest if there is a colon.
fn next_field(line: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    let mut bytes = line.iter().enumerate();
    let mut field = Vec::new();
    while let Some((index, byte)) = bytes.next() {
        match byte {
            b':' => return (field, Some(&line[index + 1..])),
            b'\\' => field.push(bytes.next().map_or(b'\\', |(_, escaped)| *escaped)),
            _ => field.push(*byte),
        }
    }
    (field, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_line_provides_the_password() {
        let text = "# db:5432:lango:ann:no\ndb:5432:other:ann:no\ndb:5433:lango:ann:no\r\n\
                    db:5432:lango:bob:no\ndb:5432:lango:ann:yes\r\n*:*:*:*:late\n";
        for (text, address, password) in [
            (text, "ann@db/lango", Some("yes")),
            (text, "ann@db:5433/lango", Some("no")),
            (text, "eve@other/x", Some("late")),
            ("db:5432:lango:ann", "ann@db/lango", None),
            ("db:5432:ann:ann:own", "ann@db", Some("own")),
            ("d:*:*:*:no", "ann@db/lango", None),
            ("dbx:*:*:*:no", "ann@db/lango", None),
            // Colons and backslashes are escaped.
            (
                "db:5432:a\\:b:c\\\\d:p\\:q\\\\r:rest",
                "c%5Cd@db/a%3Ab",
                Some("p:q\\r"),
            ),
            // The usual socket folders are called `localhost`.
            (
                "localhost:*:*:*:s",
                "ann@%2Fvar%2Frun%2Fpostgresql/lango",
                Some("s"),
            ),
            ("/srv/pg:*:*:*:s", "ann@%2Fsrv%2Fpg/lango", Some("s")),
        ] {
            let config = format!("postgres://{address}").parse().unwrap();
            let found = look_up(text.as_bytes(), &wanted(&config));
            assert_eq!(found.as_deref(), password.map(str::as_bytes), "{address}");
        }
    }

    #[test]
    fn user_and_password_come_from_the_address_then_the_environment_then_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pass");
        fs::write(&path, "*:*:*:*:s3cret\n").unwrap();
        let complete = |address: &str, mode, password: Option<&str>| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let variable = |name: &str| match name {
                "PGUSER" => Some("ann".to_owned()),
                "PGPASSWORD" => password.map(str::to_owned),
                _ => Some(path.display().to_string()),
            };
            let mut config: Config = address.parse().unwrap();
            let hint = super::complete(&mut config, variable);
            let user = config.get_user().unwrap().to_owned();
            let password = config.get_password().unwrap_or_default();
            (user, String::from_utf8(password.to_vec()).unwrap(), hint)
        };
        let (_, password, hint) = complete("postgres://db/lango", 0o640, None);
        assert_eq!(password, "");
        let hint = hint.unwrap();
        assert!(
            hint.contains("chmod 600") && !hint.contains("s3cret"),
            "{hint}"
        );
        for (address, variable, user, password) in [
            ("postgres://db/lango", None, "ann", "s3cret"),
            ("postgres://db/lango", Some("first"), "ann", "first"),
            ("postgres://bob:own@db/lango", Some("first"), "bob", "own"),
        ] {
            let expected = (user.to_owned(), password.to_owned(), None);
            assert_eq!(complete(address, 0o600, variable), expected);
        }
    }
}
