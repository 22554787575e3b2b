//! Finds the code that a program runs from other files: the interpreter in a script's first line, and the script or
//! modules that an interpreter loads.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Number of bytes of a script's first line that the kernel reads.
const FIRST_LINE_BYTES: usize = 256;

/// Programs whose argument is a script to run, or a folder that contains one.
const INTERPRETERS: &[&str] = &[
    "python", "pypy", "node", "bun", "deno", "tsx", "ts-node", "ruby", "perl", "php", "lua",
    "Rscript", "sh", "bash", "dash", "zsh", "fish", "ksh",
];

/// Options that load code from a file or folder, in addition to the script.
const LOADING_OPTIONS: &[(&str, &[&str])] = &[
    ("perl", &["-I"]),
    ("ruby", &["-I", "-r"]),
    (
        "node",
        &[
            "-r",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
        ],
    ),
    ("bun", &["-r", "--require", "--preload", "--import"]),
    (
        "deno",
        &["--preload", "--import", "--require", "--import-map"],
    ),
    ("tsx", &["-r", "--require", "--import"]),
    ("ts-node", &["-r", "--require"]),
    (
        "java",
        &["-cp", "-classpath", "--class-path", "-p", "--module-path"],
    ),
    ("php", &["-c", "-f"]),
    ("lua", &["-l"]),
];

/// Returns the program that the first line of this file starts, if the file is a script.
pub(super) fn of_file(file: &Path) -> Option<PathBuf> {
    // Reading anything but a regular file could block.
    file.metadata().ok().filter(|metadata| metadata.is_file())?;
    let mut start = Vec::new();
    let file = File::open(file).ok()?;
    file.take(FIRST_LINE_BYTES as u64)
        .read_to_end(&mut start)
        .ok()?;
    of_script(&start)
}

/// Returns the program that the first line of a script starts.
pub(super) fn of_script(script: &[u8]) -> Option<PathBuf> {
    let line = script.strip_prefix(b"#!")?;
    let line = &line[..line.len().min(FIRST_LINE_BYTES)];
    let line = line.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let program = PathBuf::from(words.next()?);
    if program.file_name()? != "env" {
        return Some(program);
    }
    let is_program = |word: &&str| !word.starts_with('-') && !word.contains('=');
    words.find(is_program).map(PathBuf::from)
}

/// Returns the paths that a command loads with options, such as Perl's `-I`. Recognises programs anywhere in the
/// command, such as after `env`.
pub(super) fn loaded_by_options(argv: &[String]) -> Vec<String> {
    let mut loaded = Vec::new();
    for (at, word) in argv.iter().enumerate() {
        let name = name_of(word);
        let known = LOADING_OPTIONS
            .iter()
            .find(|(known, _)| Some(*known) == name);
        let Some((_, options)) = known else { continue };
        let rest = &argv[at + 1..];
        for (word, next) in rest.iter().zip(rest.iter().skip(1).map(Some).chain([None])) {
            let is_option = |option: &str| options.contains(&option);
            match word.split_once('=') {
                Some((option, value)) if is_option(option) => loaded.push(value.to_owned()),
                _ if is_option(word) => loaded.extend(next.cloned()),
                _ => {}
            }
        }
    }
    loaded
}

/// Returns the name of a program without its version.
fn name_of(program: &str) -> Option<&str> {
    let name = Path::new(program).file_name()?.to_str()?;
    Some(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// Returns the index of the argument that names what an interpreter runs: a script, or a folder with one.
pub(super) fn script_of(argv: &[String]) -> Option<usize> {
    let program = name_of(&argv[0])?;
    if !INTERPRETERS.contains(&program) {
        return None;
    }
    let mut words = argv.iter().enumerate().skip(1);
    while let Some((at, word)) = words.next() {
        match word.as_str() {
            // The code is an argument or a module rather than a file.
            "-m" | "-c" | "-e" | "-p" | "--eval" | "--print" => return None,
            "-X" | "-W" | "-r" | "--require" | "--import" => drop(words.next()),
            "run" => {}
            option if option.starts_with('-') => {}
            _ => return Some(at),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_script_names_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        for (line, expected) in [
            (
                "#!/opt/venv/bin/python3 -u\nx",
                Some("/opt/venv/bin/python3"),
            ),
            ("#! /bin/sh\n", Some("/bin/sh")),
            ("#!/usr/bin/env -S A=1 node\n", Some("node")),
            ("import os\n", None),
            ("", None),
        ] {
            std::fs::write(&file, line).unwrap();
            assert_eq!(of_file(&file), expected.map(PathBuf::from), "{line}");
        }
        assert_eq!(of_file(folder.path()), None);
    }

    #[test]
    fn the_argument_that_an_interpreter_runs_is_found() {
        let found = |words: &[&str]| {
            let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            script_of(&argv)
        };
        assert_eq!(found(&["/usr/bin/python3.12", "-u", "/x"]), Some(2));
        assert_eq!(found(&["node", "-r", "y", "/x"]), Some(3));
        assert_eq!(found(&["bash", "/x"]), Some(1));
        assert_eq!(found(&["deno", "run", "/x"]), Some(2));
        assert_eq!(found(&["python3", "-m", "server", "/x"]), None);
        assert_eq!(found(&["python3", "/x.py", "/y"]), Some(1));
        assert_eq!(found(&["mcp-server-git", "--repository", "/x"]), None);
    }

    #[test]
    fn a_path_that_an_option_loads_is_found_even_after_env() {
        let loaded = |words: &[&str]| {
            let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            loaded_by_options(&argv)
        };
        assert_eq!(loaded(&["perl", "-I", "/lib", "x.pl"]), ["/lib"]);
        assert_eq!(loaded(&["env", "A=1", "ruby3.2", "-I", "/lib"]), ["/lib"]);
        assert_eq!(loaded(&["node", "--import=/lib", "x"]), ["/lib"]);
        assert!(loaded(&["server", "-I", "/lib"]).is_empty());
        assert!(loaded(&["perl", "x.pl", "-I"]).is_empty());
    }
}
