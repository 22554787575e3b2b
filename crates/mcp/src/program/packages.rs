//! Checks that programs which download and run packages (package runners) get an exact version of each package.
//!
//! Without an exact version the registry decides at every start which code runs. lango recognises a runner anywhere in
//! the command, such as after `env` or `nice` and inside a shell command. It refuses a runner's command that it does
//! not understand, because a package could hide in it.

use super::runners::{MainArgument, RUNNERS, Runner, RunnerCommand};
use std::path::Path;

/// Characters that separate the words of a shell command or of a list.
const SEPARATORS: &str = " \t\r\n'\"`;|&()<>[]{}$,\\";
/// The shortest abbreviation of a command that lango recognises; npm accepts abbreviations.
const SHORTEST_ABBREVIATION: usize = 3;

/// Refuses a command that downloads a package without an exact version, and says how to write the version. Returns the
/// command's packages that are on this machine. A word in `data` is not a runner, but may be a package.
pub(super) fn check(argv: &[String], data: &[String]) -> Result<Vec<String>, String> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let is_data = |word: &str| data.iter().any(|data| data == word);
    let mut local = check_line(&words, &is_data)?;
    for word in words.into_iter().filter(|word| !is_data(word)) {
        let parts = word.split(|c| SEPARATORS.contains(c));
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        if parts.len() > 1 {
            local.extend(check_line(&parts, &|_| false)?);
        }
    }
    Ok(local)
}

/// Returns whether a word of the command starts a program that downloads packages.
pub(super) fn has_runner(argv: &[String], data: &[String]) -> bool {
    let words = argv.iter().enumerate();
    let mut programs = words.filter(|(at, word)| *at == 0 || !data.contains(word));
    programs.any(|(_, word)| {
        let mut parts = word.split(|c| SEPARATORS.contains(c));
        parts.any(|part| runner_in(part).is_some())
    })
}

fn runner_in(word: &str) -> Option<&'static Runner> {
    let name = program_in(word);
    RUNNERS.iter().find(|runner| runner.names.contains(&name))
}

/// Checks the packages of every runner in these words.
fn check_line(line: &[&str], is_data: &dyn Fn(&str) -> bool) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for (at, word) in line.iter().enumerate() {
        // The first word is always a program.
        let Some(runner) = runner_in(word).filter(|_| at == 0 || !is_data(word)) else {
            continue;
        };
        let local = runner.check(&line[at + 1..]).map_err(|error| {
            if at == 0 {
                error
            } else {
                format!("{error}; if `{word}` is not a program, list it in `data`")
            }
        })?;
        all.extend(local);
    }
    Ok(all)
}

/// Returns the name of the program that a word may start: `npm` for `/usr/bin/npm`, `npm-cli.js`, `npm@11.0.0` and
/// `--run=npm`.
fn program_in(word: &str) -> &str {
    let word = word.split_once("==").map_or(word, |(name, _)| name);
    let word = word.rsplit('=').next().unwrap_or(word);
    let name = Path::new(word).file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or(word);
    let name = name.split('@').next().unwrap_or(name);
    let endings = [".js", ".cjs", ".mjs", "-cli"];
    endings
        .iter()
        .fold(name, |name, end| name.strip_suffix(end).unwrap_or(name))
}

/// Returns whether a package is on this machine, so that nothing is downloaded.
fn is_local(package: &str) -> bool {
    ["/", "./", "../"]
        .iter()
        .any(|start| package.starts_with(start))
}

/// The state while parsing the words after the name of a runner.
#[derive(Default)]
struct Parse<'a> {
    packages: Vec<&'a str>,
    has_main: bool,
    /// The words of the command so far.
    command: Vec<&'a str>,
    /// An unknown option before the command, whose value may be the next word.
    unknown: Option<&'a str>,
}

impl Runner {
    fn check(&self, words: &[&str]) -> Result<Vec<String>, String> {
        for package in words.iter().filter_map(|word| self.specified(word)) {
            self.registry.check(package)?;
        }
        let packages = self.packages_in(words)?.into_iter();
        let packages = packages.filter(|package| self.specified(package).is_none());
        let (local, remote): (Vec<&str>, Vec<&str>) =
            packages.partition(|package| is_local(package));
        for package in remote {
            self.registry.check(package)?;
        }
        Ok(local.into_iter().map(str::to_owned).collect())
    }

    /// Returns the package of a specifier, without the path of a file in the package.
    fn specified<'a>(&self, word: &'a str) -> Option<&'a str> {
        let value = word.rsplit('=').next().unwrap_or(word);
        let mut specifiers = self.options.specifiers.iter();
        let package = specifiers.find_map(|start| value.strip_prefix(start))?;
        let package = package.trim_start_matches('/');
        let version = package.char_indices().skip(1).find(|(_, c)| *c == '@');
        let path = version.and_then(|(at, _)| package[at..].find('/').map(|path| at + path));
        Some(&package[..path.unwrap_or(package.len())])
    }

    /// Returns the packages that these words name.
    fn packages_in<'a>(&self, words: &[&'a str]) -> Result<Vec<&'a str>, String> {
        let mut parse = Parse::default();
        let mut command = self
            .commands
            .iter()
            .find(|command| command.words.is_empty());
        let mut rest = words.iter().copied();
        while let Some(word) = rest.next() {
            if word != "--" && word.starts_with('-') {
                self.read_option(word, &mut rest, command, &mut parse)?;
                continue;
            }
            let main = if word == "--" {
                rest.next()
            } else {
                Some(word)
            };
            let Some(main) = main else { break };
            if let Some(command) = command {
                let is_package = command.main != MainArgument::Project || main.contains("://");
                parse
                    .packages
                    .extend(Some(main).filter(|_| is_package && !parse.has_main));
                break;
            }
            if main.contains("://") {
                parse.packages.push(main);
                break;
            }
            parse.command.push(main);
            let is_other = self.other_commands.contains(&main) || main.contains(['/', '.']);
            if parse.unknown.is_none() && is_other {
                return Ok(Vec::new());
            }
            let is_start = |command: &&RunnerCommand| is_command(&parse.command, command.words);
            match self.commands.iter().find(is_start) {
                Some(found) if parse.unknown.is_none() => {
                    let is_whole = found.words.len() == parse.command.len();
                    command = is_whole.then_some(found);
                }
                _ => return self.without_command(words, &parse),
            }
        }
        let needs_package = command.is_some_and(|command| command.main == MainArgument::Package);
        if parse.packages.is_empty() && needs_package {
            return Err(format!(
                "the command of `{}` names no package",
                self.names[0]
            ));
        }
        Ok(parse.packages)
    }

    fn read_option<'a>(
        &self,
        word: &'a str,
        rest: &mut dyn Iterator<Item = &'a str>,
        command: Option<&RunnerCommand>,
        parse: &mut Parse<'a>,
    ) -> Result<(), String> {
        let options = &self.options;
        let (option, attached) = split_option(word);
        let has = |options: &[&str]| options.contains(&option);
        let is_main = has(options.packages);
        if is_main || has(options.extras) {
            let value = attached.or_else(|| rest.next());
            // uv accepts a list of packages.
            parse.packages.extend(value.unwrap_or_default().split(','));
            parse.has_main |= is_main;
        } else if has(options.unpinned) {
            return Err(format!(
                "`{option}` names packages without an exact version; name each with `--with NAME==VERSION`"
            ));
        } else if has(options.valued) {
            if attached.is_none() {
                rest.next();
            }
        } else if !(has(options.flags) && attached.is_none_or(|more| self.are_flags(option, more)))
        {
            let names_packages = !options.packages.is_empty() || !options.extras.is_empty();
            match command {
                None => parse.unknown = Some(word),
                Some(command) if command.main == MainArgument::Project && !names_packages => {}
                Some(command) => {
                    return Err(format!(
                        "lango does not know the option `{word}` of `{}`, so it cannot tell which package runs; remove it \
                         and write `{}`",
                        self.names[0],
                        self.example(command)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns whether all letters after a flag are flags too, as in `-qy`, or the flag is a long one with an attached
    /// value.
    fn are_flags(&self, option: &str, more: &str) -> bool {
        let is_flag = |c: char| self.options.flags.contains(&format!("-{c}").as_str());
        option.starts_with("--") || more.chars().all(is_flag)
    }

    /// Accepts a command that runs no package. Fails if a command that does run one may be hidden in the words.
    fn without_command<'a>(
        &self,
        words: &[&'a str],
        parse: &Parse<'a>,
    ) -> Result<Vec<&'a str>, String> {
        let runs_packages = |command: &&RunnerCommand| command.main != MainArgument::Project;
        let commands: Vec<&RunnerCommand> = self.commands.iter().filter(runs_packages).collect();
        let is_named = |word: &&&str| {
            let option = split_option(word).0;
            let is_option = self.options.extras.contains(&option);
            let is_word = commands
                .iter()
                .any(|command| command.words.first() == Some(*word));
            is_option || is_word || self.options.packages.contains(&option)
        };
        let Some(found) = words.iter().find(is_named) else {
            return Ok(Vec::new());
        };
        let why = match parse.unknown {
            Some(option) => format!("the option `{option}`, which lango does not know"),
            None => format!("the word `{}`", parse.command.join(" ")),
        };
        let commands: Vec<String> = commands
            .iter()
            .map(|command| self.example(command))
            .collect();
        Err(format!(
            "`{}` has {why} before `{found}`, so lango cannot tell which package runs; write `{}`",
            self.names[0],
            commands.join("` or `")
        ))
    }

    /// Returns an example of a command of this runner.
    fn example(&self, command: &RunnerCommand) -> String {
        let mut words = vec![self.names[0]];
        words.extend(command.words);
        let package = self.registry.example("NAME");
        if command.main == MainArgument::Project {
            words.extend(self.options.extras.first());
        }
        format!("{} {package}", words.join(" "))
    }
}

/// Returns whether these words, possibly abbreviated, are the start of a command. npm accepts abbreviations.
fn is_command(words: &[&str], command: &[&str]) -> bool {
    let is_same = |(word, full): (&&str, &&str)| {
        let is_abbreviation = word.len() >= SHORTEST_ABBREVIATION && full.starts_with(word);
        word == full || is_abbreviation
    };
    words.len() <= command.len() && words.iter().zip(command).all(is_same)
}

/// Splits an option from its attached value: `--from=x`, `-wx`, `-w=x`.
fn split_option(word: &str) -> (&str, Option<&str>) {
    if word.starts_with("--") {
        return match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word, None),
        };
    }
    match word.char_indices().nth(2) {
        Some((at, _)) => {
            let (option, value) = word.split_at(at);
            (option, Some(value.strip_prefix('=').unwrap_or(value)))
        }
        None => (word, None),
    }
}
