//! Who connects, and with which password, where the address does not say: found as PostgreSQL's own programs find it, in
//! `PGUSER`, `PGPASSWORD` and the password file.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// How much of a password file is read; ordinary ones have a few lines.
const LARGEST: u64 = 1 << 20;

/// The folders in which PostgreSQL keeps its socket unless it is told otherwise; a password file calls them `localhost`.
const USUAL_SOCKETS: [&str; 3] = ["/tmp", "/run/postgresql", "/var/run/postgresql"];

/// What the process was started with that concerns PostgreSQL.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    pub user: Option<String>,
    pub password: Option<String>,
    /// The password file, whether it is there or not.
    pub file: Option<PathBuf>,
}

impl Surroundings {
    pub(super) fn of_process() -> Self {
        let text = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let named = text("PGPASSFILE").map(PathBuf::from);
        Self {
            user: text("PGUSER").or_else(|| whoami::username().ok()),
            password: text("PGPASSWORD"),
            file: named.or_else(|| text("HOME").map(|home| Path::new(&home).join(".pgpass"))),
        }
    }

    /// Fills in what the address left out. Gives what to tell somebody who is not let in.
    pub(super) fn complete(&self, config: &mut Config) -> Option<String> {
        if config.get_user().is_none()
            && let Some(user) = &self.user
        {
            config.user(user);
        }
        if config.get_password().is_some() {
            return None;
        }
        if let Some(password) = &self.password {
            config.password(password);
            return None;
        }
        let found = match &self.file {
            Some(file) => from_file(file, config),
            None => Ok(None),
        };
        match found {
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

/// The password for this server, database and user. A file that others can read is not used, and neither is one that is no
/// file: what is said then is for whoever is not let in.
fn from_file(file: &Path, config: &Config) -> Result<Option<Vec<u8>>, String> {
    let Ok(about) = fs::metadata(file) else {
        return Ok(None);
    };
    let shown = file.display();
    if !about.is_file() {
        return Err(format!(
            "the password file `{shown}` is not used: it is no ordinary file"
        ));
    }
    if about.permissions().mode() & 0o077 != 0 {
        return Err(format!(
            "the password file `{shown}` is not used, since others can read it; `chmod 600 {shown}` closes it"
        ));
    }
    let mut text = Vec::new();
    let read = File::open(file).and_then(|file| file.take(LARGEST).read_to_end(&mut text));
    read.map_err(|error| format!("the password file `{shown}` cannot be read: {error}"))?;
    Ok(look_up(&text, &wanted(config)))
}

/// What a line must name: host, port, database and user.
fn wanted(config: &Config) -> [String; 4] {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(folder)) => {
            let folder = folder.display().to_string();
            match USUAL_SOCKETS.contains(&folder.as_str()) {
                true => "localhost".to_owned(),
                false => folder,
            }
        }
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    [host, port.to_string(), database.to_owned(), user.to_owned()]
}

/// The password of the first line that fits.
fn look_up(text: &[u8], wanted: &[String; 4]) -> Option<Vec<u8>> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.starts_with(b"#"));
    lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .find_map(|line| {
            let mut rest = line;
            for value in wanted {
                rest = after_field(rest, value.as_bytes())?;
            }
            Some(unescaped(rest))
        })
}

/// What follows a field that fits this value.
fn after_field<'a>(line: &'a [u8], value: &[u8]) -> Option<&'a [u8]> {
    if let Some(rest) = line.strip_prefix(b"*:") {
        return Some(rest);
    }
    let (mut rest, mut wanted) = (line, value);
    loop {
        let (mut byte, mut after) = rest.split_first()?;
        if *byte == b':' && wanted.is_empty() {
            return Some(after);
        }
        if *byte == b'\\' {
            (byte, after) = after.split_first()?;
        }
        let (next, others) = wanted.split_first()?;
        if next != byte {
            return None;
        }
        (rest, wanted) = (after, others);
    }
}

/// The last field, up to its end.
fn unescaped(mut rest: &[u8]) -> Vec<u8> {
    let mut password = Vec::new();
    while let Some((mut byte, mut after)) = rest.split_first() {
        match (byte, after.split_first()) {
            (b':', _) => break,
            (b'\\', Some(escaped)) => (byte, after) = escaped,
            _ => {}
        }
        password.push(*byte);
        rest = after;
    }
    password
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
    fn the_first_line_that_fits_has_the_password() {
        let text = "# db:5432:lango:ann:no\ndb:5432:other:ann:no\ndb:5433:lango:ann:no\r\n\
                    db:5432:lango:bob:no\ndb:5432:lango:ann:yes\r\n*:*:*:*:late\n";
        let at = |rest: &str| format!("postgres://{rest}");
        assert_eq!(found(text, &at("ann@db/lango")).unwrap(), "yes");
        assert_eq!(found(text, &at("ann@db:5433/lango")).unwrap(), "no");
        assert_eq!(found(text, &at("eve@elsewhere/x")).unwrap(), "late");
        assert_eq!(found("db:5432:lango:ann", &at("ann@db/lango")), None);
        assert_eq!(found("db:5432:ann:ann:own", &at("ann@db")).unwrap(), "own");
        assert_eq!(found("d:*:*:*:no", &at("ann@db/lango")), None);
        assert_eq!(found("dbx:*:*:*:no", &at("ann@db/lango")), None);
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
    fn a_file_that_others_can_read_is_not_used_and_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pass");
        fs::write(&path, "*:*:*:*:s3cret\n").unwrap();
        let surroundings = Surroundings {
            user: Some("ann".to_owned()),
            password: None,
            file: Some(path.clone()),
        };
        let complete = |surroundings: &Surroundings| {
            let mut config: Config = "postgres://db/lango".parse().unwrap();
            let hint = surroundings.complete(&mut config);
            assert_eq!(config.get_user(), Some("ann"));
            (config.get_password().map(<[u8]>::to_vec), hint)
        };
        let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o640);
        let (password, hint) = complete(&surroundings);
        assert_eq!(password, None);
        let hint = hint.unwrap();
        assert!(
            hint.contains("chmod 600") && !hint.contains("s3cret"),
            "{hint}"
        );
        set_mode(0o600);
        assert_eq!(complete(&surroundings), (Some(b"s3cret".to_vec()), None));
        let named = Surroundings {
            password: Some("first".to_owned()),
            ..surroundings
        };
        assert_eq!(complete(&named), (Some(b"first".to_vec()), None));
    }
}
