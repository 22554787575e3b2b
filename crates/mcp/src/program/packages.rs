//! Programs that download a package and run it: each package must have an exact version.
//!
//! Without one the registry decides at every start which code runs, and what was tried yesterday says nothing about today.

use std::path::Path;

/// How a runner writes a package with its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registry {
    Npm,
    PyPi,
}

/// A program that runs packages.
struct Runner {
    registry: Registry,
    /// The words that make it one, such as `pnpm dlx`.
    words: &'static [&'static str],
    /// Options that name a package. The first one that names the main package makes the next plain word a command.
    packages: &'static [&'static str],
    /// Options that name one more package besides the main one.
    extras: &'static [&'static str],
    /// Other options that take a value.
    valued: &'static [&'static str],
    /// Options that name packages in a way that has no version.
    unpinned: &'static [&'static str],
}

const NPM_PACKAGES: &[&str] = &["-p", "--package"];
const NPM_VALUED: &[&str] = &[
    "-c",
    "--call",
    "-w",
    "--workspace",
    "--registry",
    "--cache",
    "--userconfig",
    "--prefix",
    "--loglevel",
    "--shell",
    "--node-options",
];
const UV_VALUED: &[&str] = &[
    "-p",
    "--python",
    "-i",
    "--index-url",
    "--index",
    "--default-index",
    "--extra-index-url",
    "-f",
    "--find-links",
    "--index-strategy",
    "--keyring-provider",
    "--resolution",
    "--prerelease",
    "--exclude-newer",
    "--link-mode",
    "--cache-dir",
    "--directory",
    "--project",
    "--config-file",
    "--env-file",
    "-P",
    "--upgrade-package",
    "--reinstall-package",
    "--refresh-package",
    "--python-platform",
    "--color",
];
const UV_UNPINNED: &[&str] = &["--with-requirements", "--with-editable", "--overrides"];

const fn npm(words: &'static [&'static str]) -> Runner {
    Runner {
        registry: Registry::Npm,
        words,
        packages: NPM_PACKAGES,
        extras: &[],
        valued: NPM_VALUED,
        unpinned: &[],
    }
}

const fn uv(words: &'static [&'static str]) -> Runner {
    Runner {
        registry: Registry::PyPi,
        words,
        packages: &["--from"],
        extras: &["--with", "-w"],
        valued: UV_VALUED,
        unpinned: UV_UNPINNED,
    }
}

const RUNNERS: &[Runner] = &[
    npm(&["npx"]),
    npm(&["npm", "exec"]),
    npm(&["npm", "x"]),
    npm(&["bunx"]),
    npm(&["bun", "x"]),
    npm(&["pnpx"]),
    npm(&["pnpm", "dlx"]),
    npm(&["yarn", "dlx"]),
    uv(&["uvx"]),
    uv(&["uv", "tool", "run"]),
    Runner {
        registry: Registry::PyPi,
        words: &["pipx", "run"],
        packages: &["--spec"],
        extras: &["--with"],
        valued: &["--python", "--index-url", "-i", "--pip-args", "--backend"],
        unpinned: &[],
    },
];

/// Refuses a command that downloads a package without an exact version, and says how to write one; gives the packages
/// that lie on this machine.
pub(super) fn check(argv: &[String]) -> Result<Vec<String>, String> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let words = without_env(&words);
    let found = RUNNERS.iter().find_map(|runner| runner.arguments(words));
    let Some((runner, arguments)) = found else {
        return Ok(Vec::new());
    };
    let packages = runner.packages_in(arguments)?;
    let (local, remote): (Vec<&str>, Vec<&str>) =
        packages.into_iter().partition(|package| is_local(package));
    for package in remote {
        runner.check_package(package)?;
    }
    Ok(local.into_iter().map(str::to_owned).collect())
}

/// Whether a package lies on this machine, so that nothing is downloaded.
fn is_local(package: &str) -> bool {
    ["/", "./", "../"]
        .iter()
        .any(|start| package.starts_with(start))
}

/// The words behind `env` and the variables that it sets.
fn without_env<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    match words.split_first() {
        Some((program, rest)) if name_of(program) == "env" => {
            let is_set = |word: &&&str| word.starts_with('-') || word.contains('=');
            &rest[rest.iter().take_while(is_set).count()..]
        }
        _ => words,
    }
}

fn name_of(program: &str) -> &str {
    let name = Path::new(program).file_name();
    name.and_then(|name| name.to_str()).unwrap_or(program)
}

impl Runner {
    /// What follows the words that make a command this runner. Options may stand between them.
    fn arguments<'a, 'b>(
        &'static self,
        words: &'a [&'b str],
    ) -> Option<(&'static Self, &'a [&'b str])> {
        let (program, mut rest) = words.split_first()?;
        let (name, more) = self.words.split_first()?;
        if name_of(program) != *name {
            return None;
        }
        for expected in more {
            let options = rest.iter().take_while(|word| word.starts_with('-'));
            rest = &rest[options.count()..];
            rest = rest.strip_prefix(&[*expected])?;
        }
        Some((self, rest))
    }

    /// The packages that these arguments name.
    fn packages_in<'b>(&self, arguments: &[&'b str]) -> Result<Vec<&'b str>, String> {
        let mut words = arguments.iter().copied();
        let mut packages = Vec::new();
        let mut has_main = false;
        while let Some(word) = words.next() {
            let (option, attached) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ => (word, None),
            };
            let is = |options: &[&str]| options.contains(&option);
            let is_main = is(self.packages);
            if is_main || is(self.extras) {
                let value = attached.or_else(|| words.next());
                // uv takes a list of them.
                packages.extend(value.unwrap_or_default().split(','));
                has_main |= is_main;
            } else if is(self.unpinned) {
                return Err(format!(
                    "`{option}` names packages without an exact version; name each with `--with NAME==VERSION`"
                ));
            } else if is(self.valued) {
                if attached.is_none() {
                    words.next();
                }
            } else if word == "--" || !word.starts_with('-') {
                let command = if word == "--" {
                    words.next()
                } else {
                    Some(word)
                };
                packages.extend(command.filter(|_| !has_main));
                break;
            }
        }
        if packages.is_empty() {
            return Err("it names no package".to_owned());
        }
        Ok(packages)
    }

    fn check_package(&self, package: &str) -> Result<(), String> {
        if self.registry.is_exact(package) {
            return Ok(());
        }
        let name = self.registry.name_in(package);
        let (example, newest) = match self.registry {
            Registry::Npm => (format!("{name}@1.2.3"), format!("npm view {name} version")),
            Registry::PyPi => (
                format!("{name}==1.2.3"),
                format!("pip index versions {name}"),
            ),
        };
        Err(format!(
            "`{package}` has no exact version, so the registry would decide at every start which code runs; write for \
             example `{example}` in `command` (`{newest}` tells which versions exist)"
        ))
    }
}

impl Registry {
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

    /// The name of a package, for an example.
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

/// The name and the version; the `@` of a scope is part of the name.
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

/// A name with extras, as in `name[extra,other]`.
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

/// Three numbers, and what may follow them. Fewer are a range.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(command: &str) -> Result<Vec<String>, String> {
        let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
        check(&argv)
    }

    #[test]
    fn a_package_with_an_exact_version_is_accepted() {
        for command in [
            "npx pkg@1.2.3",
            "npx -y @scope/pkg@1.2.3 --flag .",
            "/usr/bin/npx --yes pkg@1.2.3-beta.1+x",
            "npx -p pkg@1.2.3 cmd",
            "npx --package=pkg@1.2.3 -p @a/b@0.0.1 -- cmd arg",
            "npx --registry https://r.example pkg@1.2.3",
            "npm exec --yes -- pkg@1.2.3",
            "bunx pkg@1.2.3",
            "bun x pkg@1.2.3",
            "pnpm dlx pkg@1.2.3",
            "pnpm --silent dlx --package=pkg@1.2.3 cmd",
            "yarn dlx -q pkg@1.2.3",
            "uvx pkg@1.2.3",
            "uvx pkg==2025.9.25 --flag",
            "uvx --from pkg[cli]==1.2 cmd",
            "uvx --python 3.12 --with other==1.0 pkg==1.2.3",
            "uv tool run --from=pkg==1.2.3 cmd",
            "pipx run pkg==1.2.3",
            "pipx run --spec pkg==1.2.3 cmd",
            "env -i A=1 npx pkg@1.2.3",
            "npx /opt/server.tgz",
            "node server.js latest",
            "uv pip list",
            "npm start",
        ] {
            assert!(checked(command).is_ok(), "{command}");
        }
    }

    #[test]
    fn everything_but_an_exact_version_is_refused() {
        for command in [
            "npx pkg",
            "npx -y @scope/pkg",
            "npx pkg@latest",
            "npx pkg@^1.2.3",
            "npx pkg@1.2",
            "npx pkg@1.x",
            "npx pkg@1.2.3-",
            "npx pkg@npm:other@1.2.3",
            "npx github:user/repo",
            "npx user/repo",
            "npx https://example.com/pkg-1.2.3.tgz",
            "npx git+ssh://example.com/x@1.2.3",
            "npx -p pkg@1.2.3 -p other cmd",
            "npx",
            "npm exec pkg",
            "bunx pkg",
            "pnpm dlx pkg",
            "yarn dlx pkg@next",
            "uvx pkg",
            "uvx pkg@latest",
            "uvx pkg>=1.2.3",
            "uvx pkg==1.*",
            "uvx pkg==1.2,>1",
            "uvx --from pkg cmd",
            "uvx --from git+https://example.com/x@1.2.3 cmd",
            "uvx --with other pkg==1.2.3",
            "uvx --with-requirements r.txt pkg==1.2.3",
            "uv tool run pkg",
            "pipx run pkg",
            "pipx run https://example.com/x.py",
            "env A=1 npx pkg",
        ] {
            assert!(checked(command).is_err(), "{command}");
        }
    }

    #[test]
    fn packages_on_this_machine_are_given_to_be_checked_as_files() {
        let local = |command| checked(command).unwrap();
        assert_eq!(local("npx /opt/server"), ["/opt/server"]);
        assert_eq!(local("uvx --from ./srv --with a==1.0 cmd"), ["./srv"]);
        assert!(local("npx pkg@1.2.3 /opt/server").is_empty());
    }

    #[test]
    fn the_error_says_what_to_write() {
        let error = checked("npx -y @scope/pkg@latest").unwrap_err();
        assert!(
            error.contains("`@scope/pkg@latest` has no exact version"),
            "{error}"
        );
        assert!(error.contains("`@scope/pkg@1.2.3` in `command`"), "{error}");
        assert!(error.contains("npm view @scope/pkg version"), "{error}");
        let error = checked("uvx mcp-server-time").unwrap_err();
        assert!(error.contains("`mcp-server-time==1.2.3`"), "{error}");
        assert!(
            error.contains("pip index versions mcp-server-time"),
            "{error}"
        );
    }
}
