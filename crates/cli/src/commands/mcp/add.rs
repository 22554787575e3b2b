//! `lango mcp add` and `remove`: change the servers in the user's configuration file. Secrets are named, never stored.

use crate::args::AddArguments;
use crate::exit::Exit;
use crate::screen;
use lango::app::{App, Failure};
use lango_config::edit::{self, EditError, KeyChange};
use lango_config::{Paths, ProcessEnv, is_secret_name, redact, redact_value};
use lango_mcp::find_program;
use std::ffi::OsStr;
use std::path::Path;

/// The prefix of a value that names a secret of the vault.
const SECRET_PREFIX: &str = "secret:";

/// The agent that gets the tools of a server if the user names none. Each call is approved in any case.
const DEFAULT_OWNER: &str = "operator";

/// Adds a server, and takes the change back if the configuration is invalid with it.
pub(super) async fn add(flags: Vec<String>, arguments: AddArguments) -> Result<Exit, Failure> {
    let id = &arguments.id;
    let process_env = ProcessEnv::from_process(flags.clone())?;
    let paths = Paths::locate(&process_env)?;
    let section = section(id)?;
    let file = &paths.user_file;
    let mut changes = Vec::new();
    if has_section(file, &section)? {
        if !arguments.force {
            let message = format!(
                "there is already an MCP server `{id}` in `{}`",
                file.display()
            );
            return Err(Failure::usage(message)
                .next("use --force to replace it, or change single keys with `lango config set`"));
        }
        changes.push(KeyChange::Unset {
            key: section.clone(),
        });
    }
    let mut settings = settings(&arguments, &process_env)?;
    settings.extend(
        arguments
            .agent
            .as_deref()
            .map(|agent| ("agent", agent.into())),
    );
    for (name, value) in &settings {
        let key = format!("{section}.{name}");
        let value = edit::parse_value(&process_env, file, &key, &value.to_string())?;
        changes.push(KeyChange::Set { key, value });
    }
    let change = edit::change_keys(file, &changes)?;
    let app = match App::load(flags).await {
        Ok(app) => app,
        Err(failure) => {
            edit::revert(file, &change)?;
            return Err(failure.at("nothing was added"));
        }
    };
    let what = redact_value(settings[0].1.clone());
    screen::print(&format!("added `{id}` to {}: {what}", file.display()))?;
    for hint in hints(&arguments, &process_env) {
        screen::say(&hint);
    }
    if arguments.agent.is_none() {
        screen::say(&choose_owner(&app, file, &section)?);
    }
    screen::print(&format!(
        "next: `lango mcp test {id}` connects and shows its tools; it says whether they must be trusted first"
    ))?;
    Ok(Exit::Ok)
}

/// Gives the tools of a server to the default agent, if there is one in this topology. Returns what the user should know
/// about their owner.
fn choose_owner(app: &App, file: &Path, section: &str) -> Result<String, Failure> {
    let agents = || app.tree.agents.iter().map(|agent| agent.name.as_str());
    if agents().any(|name| name == DEFAULT_OWNER) {
        edit::set(file, &format!("{section}.agent"), &DEFAULT_OWNER.into())?;
        return Ok(format!(
            "its tools belong to the agent `{DEFAULT_OWNER}`; `lango config set {section}.agent NAME` gives them to another one"
        ));
    }
    Ok(match agents().collect::<Vec<_>>().join(", ") {
        names if names.is_empty() => "its tools belong to the only agent".to_owned(),
        names => format!(
            "no agent owns its tools yet; run `lango config set {section}.agent NAME` with one of {names}"
        ),
    })
}

/// Removes a server from the user's file.
pub(super) fn remove(flags: Vec<String>, id: &str) -> Result<Exit, Failure> {
    let process_env = ProcessEnv::from_process(flags)?;
    let file = Paths::locate(&process_env)?.user_file;
    match edit::unset(&file, &section(id)?) {
        Ok(_) => {}
        Err(EditError::NotSet { .. }) => {
            let message = format!("there is no MCP server `{id}` in `{}`", file.display());
            return Err(Failure::usage(message)
                .next("run `lango config show --origin` to see where its keys are set"));
        }
        Err(error) => return Err(error.into()),
    }
    screen::print(&format!("removed `{id}` from {}", file.display()))?;
    Ok(Exit::Ok)
}

/// Returns the section of a server. Other names could not be used in the names of tools.
fn section(id: &str) -> Result<String, Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if id.is_empty() || id.len() > 32 || !id.chars().all(plain) {
        let message = format!("`{id}` cannot be the name of an MCP server");
        return Err(Failure::usage(message).next("use 1 to 32 letters, digits, `-` and `_`"));
    }
    Ok(format!("mcp.servers.{id}"))
}

fn has_section(file: &Path, section: &str) -> Result<bool, Failure> {
    let text = edit::read(file)?.unwrap_or_default();
    let table: toml::Table = text.parse().unwrap_or_default();
    let mut names = section.split('.');
    let first = names.next().and_then(|name| table.get(name));
    let found = names.try_fold(first, |value, name| Some(value?.get(name)));
    Ok(found.flatten().is_some())
}

/// Returns the keys of the server with their values, the command or the address first.
fn settings(
    arguments: &AddArguments,
    process_env: &ProcessEnv,
) -> Result<Vec<(&'static str, toml::Value)>, Failure> {
    if let Some(url) = &arguments.url {
        let mut settings = vec![("url", url.as_str().into())];
        let token = match &arguments.header {
            Some(header) => Some(token_of_header(header)?),
            None => arguments.token_env.clone(),
        };
        settings.extend(token.map(|token| ("tokenEnv", token.into())));
        return Ok(settings);
    }
    let mut command = arguments.command.clone();
    if let Some(program) = command.first_mut()
        && program.contains('/')
        && !program.starts_with('{')
    {
        // The program starts in a directory of its own.
        let path = process_env.cwd.join(&*program);
        let path: std::path::PathBuf = path.components().collect();
        *program = path.to_string_lossy().into_owned();
    }
    let mut settings = vec![("command", command.into())];
    if !arguments.env.is_empty() {
        arguments
            .env
            .iter()
            .try_for_each(|pair| check_variable(pair))?;
        settings.push(("env", arguments.env.clone().into()));
    }
    if !arguments.read.is_empty() {
        let paths = arguments.read.iter();
        let paths: Vec<String> = paths
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        settings.push(("read", paths.into()));
    }
    if arguments.network.iter().any(|host| host == "*") {
        settings.push(("network", true.into()));
    } else if !arguments.network.is_empty() {
        settings.push(("network", arguments.network.clone().into()));
    }
    Ok(settings)
}

/// Refuses a variable whose value would be a secret in plain text.
fn check_variable(pair: &str) -> Result<(), Failure> {
    let Some((name, value)) = pair.split_once('=') else {
        return Ok(());
    };
    let is_secret = is_secret_name(name) || *redact(value) != *value;
    if !is_secret || value.is_empty() || value.starts_with(SECRET_PREFIX) {
        return Ok(());
    }
    let message = format!(
        "the value of `{name}` looks like a secret, and the file would contain it as plain text"
    );
    Err(Failure::usage(message).next(format!(
        "store it with `lango secrets set {name}` and use --env {name}=secret:{name} with the --network HOST that receives it, or use --env {name} to pass your own variable on"
    )))
}

/// Returns what `tokenEnv` must be so that lango sends this header.
fn token_of_header(header: &str) -> Result<String, Failure> {
    let parts = header.split_once(':');
    let token = parts
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("authorization"))
        .and_then(|(_, value)| value.trim().split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    let Some(token) = token else {
        let name = parts.map_or("", |(name, _)| name.trim());
        let message = format!(
            "lango cannot send the header `{name}` to an MCP server, only `Authorization: Bearer …`"
        );
        return Err(Failure::usage(message).next(
            "log in with `lango mcp login`, or run a bridge such as mcp-remote as a command",
        ));
    };
    let variable = token.strip_prefix('$').map(|name| {
        let inner = name
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'));
        inner.unwrap_or(name).to_owned()
    });
    let secret = token.starts_with(SECRET_PREFIX).then(|| token.to_owned());
    variable.or(secret).ok_or_else(|| {
        Failure::usage("the file would contain the token of the header as plain text").next(
            "store it with `lango secrets set NAME` and use --token-env secret:NAME, or name a variable: --header 'Authorization: Bearer $NAME'",
        )
    })
}

/// Returns what the user may not expect about this server.
fn hints(arguments: &AddArguments, process_env: &ProcessEnv) -> Vec<String> {
    let folder = &process_env.cwd;
    if let Some(url) = &arguments.url {
        let hides = *redact(url) != *url;
        let hint = "warning: the address contains what looks like a secret, and the file contains it as plain text";
        return hides.then(|| hint.to_owned()).into_iter().collect();
    }
    let id = &arguments.id;
    let mut hints: Vec<String> = missing_program(arguments, process_env)
        .into_iter()
        .collect();
    let command: toml::Value = arguments.command.clone().into();
    if redact_value(command.clone()) != command {
        hints.push(
            "warning: the command contains what looks like a secret, and the file contains it as plain text; pass it with --env NAME instead"
                .to_owned(),
        );
    }
    if arguments.network.is_empty() {
        hints.push(format!(
            "its program has no network access; allow hosts with `lango config set mcp.servers.{id}.network '[\"HOST\"]'`"
        ));
    }
    let relative = arguments.command.iter().skip(1).find(|word| {
        let path = Path::new(word);
        path.is_relative() && !word.starts_with('-') && folder.join(path).exists()
    });
    hints.extend(relative.map(|word| {
        format!(
            "warning: the program starts in a folder of its own and will not find `{word}`; write {{workspace}}/{word} or an absolute path"
        )
    }));
    hints
}

/// Warns about a program that does not exist where the sandbox looks for it.
fn missing_program(arguments: &AddArguments, process_env: &ProcessEnv) -> Option<String> {
    let name = arguments.command.first()?;
    let has_path = arguments.env.iter().any(|pair| pair.starts_with("PATH"));
    if has_path || name.contains(['/', '{']) || find_program(name).is_some() {
        return None;
    }
    let own_path = process_env.env.get(OsStr::new("PATH"));
    let own = own_path
        .into_iter()
        .flat_map(std::env::split_paths)
        .map(|folder| folder.join(name));
    let own = own
        .filter(|path| path.is_absolute())
        .find(|path| path.is_file());
    Some(match own {
        Some(path) => format!(
            "warning: the sandbox does not use your PATH, and without it there is no program `{name}`; name it as {} and open its folders with --read",
            path.display()
        ),
        None => {
            format!("warning: there is no program `{name}`; install it before you test the server")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_named_and_never_stored() {
        let token = |header| token_of_header(header).ok();
        assert_eq!(
            token("Authorization: Bearer $MY_TOKEN").as_deref(),
            Some("MY_TOKEN")
        );
        assert_eq!(
            token("authorization:bearer ${MY_TOKEN}").as_deref(),
            Some("MY_TOKEN")
        );
        assert_eq!(
            token("Authorization: Bearer secret:T").as_deref(),
            Some("secret:T")
        );
        for header in [
            "Authorization: Bearer abc123",
            "X-Api-Key: $K",
            "Authorization",
            "",
        ] {
            assert_eq!(token(header), None, "{header}");
        }
        assert!(check_variable("LEVEL=debug").is_ok() && check_variable("API_TOKEN").is_ok());
        assert!(check_variable("API_TOKEN=secret:T").is_ok());
        assert!(check_variable("API_TOKEN=abc").is_err());
        assert!(check_variable("DB=postgres://me:pw@host/db").is_err());
    }
}
