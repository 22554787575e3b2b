//! Exact versions of packages, as each registry writes them.

/// A package registry, which decides how a package and its version are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registry {
    Npm,
    PyPi,
}

impl Registry {
    /// Returns an example of a package with a version.
    pub(super) fn example(self, name: &str) -> String {
        match self {
            Self::Npm => format!("{name}@1.2.3"),
            Self::PyPi => format!("{name}==1.2.3"),
        }
    }

    /// Refuses a package without an exact version, and says how to write it.
    pub(super) fn check(self, package: &str) -> Result<(), String> {
        if self.is_exact(package) {
            return Ok(());
        }
        let name = self.name_in(package);
        let example = self.example(name);
        let newest = match self {
            Self::Npm => format!("npm view {name} version"),
            Self::PyPi => format!("pip index versions {name}"),
        };
        Err(format!(
            "`{package}` has no exact version, so the registry would decide at every start which code runs; write, for \
             example, `{example}` in `command` (`{newest}` shows which versions exist)"
        ))
    }

    fn is_exact(self, package: &str) -> bool {
        let split = match self {
            Self::Npm => split_npm(package),
            Self::PyPi => package.split_once("==").or_else(|| package.split_once('@')),
        };
        split.is_some_and(|(name, version)| match self {
            Self::Npm => is_npm_name(name) && is_semver(version),
            Self::PyPi => is_pypi_name(name) && is_python_version(version),
        })
    }

    /// Returns the name of a package for an example.
    fn name_in(self, package: &str) -> &str {
        let is_plain = match self {
            Self::Npm => is_npm_name,
            Self::PyPi => is_pypi_name,
        };
        let end = match self {
            Self::Npm => split_npm(package).map(|(name, _)| name.len()),
            Self::PyPi => package.find(['=', '<', '>', '~', '!', '@', ' ']),
        };
        let name = &package[..end.unwrap_or(package.len())];
        if is_plain(name) { name } else { "NAME" }
    }
}

/// Splits a package into name and version; the `@` of a scope is part of the name.
fn split_npm(package: &str) -> Option<(&str, &str)> {
    let at = package.char_indices().skip(1).find(|(_, c)| *c == '@')?.0;
    Some((&package[..at], &package[at + 1..]))
}

fn is_npm_name(name: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.~".contains(c))
    };
    match name.strip_prefix('@') {
        None => plain(name),
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| plain(scope) && plain(name)),
    }
}

/// Returns whether this is a valid name, possibly with extras as in `name[extra,other]`.
fn is_pypi_name(name: &str) -> bool {
    let (name, extras) = match name.split_once('[') {
        None => (name, ""),
        Some((name, extras)) => match extras.strip_suffix(']') {
            None => return false,
            Some(extras) => (name, extras),
        },
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = !name.is_empty() && name.chars().all(plain);
    is_name && extras.chars().all(|c| plain(c) || c == ',')
}

/// Returns whether this is an exact version: three numbers, possibly with a suffix. Fewer numbers are a range.
fn is_semver(version: &str) -> bool {
    let end = version.find(['-', '+']).unwrap_or(version.len());
    let (core, rest) = version.split_at(end);
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-+.".contains(c);
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && rest.chars().all(plain)
        && rest.len() != 1
}

fn is_python_version(version: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_+.!".contains(c);
    version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(plain)
}
