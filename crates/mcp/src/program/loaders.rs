//! Environment variables from which programs load code. They must not contain paths that agents can write.

use super::paths::writable_path_in;
use lango_sandbox::Policy;
use std::path::Path;

/// Variables with directories, files or options from which programs load code.
const LOADERS: &[&str] = &[
    "PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "BASH_ENV",
    "ENV",
    "ZDOTDIR",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "GEM_PATH",
    "GEM_HOME",
    "BUNDLE_GEMFILE",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "CLASSPATH",
    "DENO_DIR",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "LUA_PATH",
    "LUA_CPATH",
    "LUA_INIT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "R_LIBS",
    "R_PROFILE",
];
/// Prefixes of the names of more variables from which programs load code.
const LOADER_FAMILIES: &[&str] = &["LD_", "GIT_CONFIG", "npm_config_", "NPM_CONFIG_"];

/// Refuses a variable from which programs load code if its value contains a path that agents can write. Relative paths
/// start at the server's private directory.
pub(super) fn check(
    name: &str,
    value: &str,
    private: &Path,
    agents: &Policy,
) -> Result<(), String> {
    let is_in_family = |start: &&str| name.starts_with(*start);
    if !LOADERS.contains(&name) && !LOADER_FAMILIES.iter().any(is_in_family) {
        return Ok(());
    }
    match writable_path_in(value, private, agents) {
        Some(found) => Err(format!(
            "programs load code from the variable {name}, and its value contains `{found}`, where agents can write; remove \
             that path from {name}"
        )),
        None => Ok(()),
    }
}

/// Returns the variables that `env` sets, anywhere in the command.
pub(super) fn set_by_env(argv: &[String]) -> impl Iterator<Item = (&str, &str)> {
    let is_env = |word: &&String| {
        Path::new(word)
            .file_name()
            .is_some_and(|name| name == "env")
    };
    let start = argv.iter().position(|word| is_env(&word));
    let words = &argv[start.unwrap_or(argv.len())..];
    words.iter().filter_map(|word| word.split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_loads_code_must_not_contain_a_path_that_agents_can_write() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let agents = Policy::of(root.join("work"));
        let checked = |name: &str, value: &str| {
            let value = value.replace("{workspace}", root.join("work").to_str().unwrap());
            check(name, &value, &root.join("private"), &agents)
        };
        for name in LOADERS.iter().chain(&["LD_PRELOAD", "GIT_CONFIG_GLOBAL"]) {
            for value in [
                "{workspace}",
                "/opt:{workspace}/x",
                "--require={workspace}/x",
                "-I{workspace}/lib -MEvil",
                "../work",
                "/opt:../work/lib",
            ] {
                let error = checked(name, value).unwrap_err();
                let next = format!("remove that path from {name}");
                assert!(error.ends_with(&next), "{name}={value}: {error}");
            }
            for value in ["", "/opt/lib:/usr/lib", "--max-old-space-size=512", "lib"] {
                assert_eq!(checked(name, value), Ok(()), "{name}={value}");
            }
        }
        assert_eq!(checked("ROOT", "{workspace}"), Ok(()));
        assert_eq!(checked("LDAP_FILE", "{workspace}"), Ok(()));
    }

    #[test]
    fn variables_that_env_sets_are_found_anywhere_in_the_command() {
        let set = |words: &[&str]| -> Vec<String> {
            let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let set = set_by_env(&argv);
            set.map(|(name, value)| format!("{name} {value}")).collect()
        };
        assert_eq!(set(&["env", "-u", "X", "A=1", "srv"]), ["A 1"]);
        assert_eq!(set(&["nice", "/usr/bin/env", "A=b=c", "srv"]), ["A b=c"]);
        assert!(set(&["srv", "PATH=/x"]).is_empty());
    }
}
