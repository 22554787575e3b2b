//! `lango completions` and `lango man`: real shells load the scripts, and the pages cover every command.

use crate::lango::Lango;
use std::fs;
use std::process::{Command, Output};

/// Runs a program on a file. Returns `None` if the program is not installed.
fn run_if_installed(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{program}: {error}"),
    }
}

/// Returns the names below `Commands:` in the help of a command.
fn commands(lango: &Lango, path: &[&str]) -> Vec<String> {
    let help = lango.run(&[path, &["--help"]].concat()).ok().stdout;
    let lines = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    // A line with a longer indent continues the description of the command above.
    let names = lines.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_completes_commands_with_the_script() {
    let lango = Lango::new();
    let script = lango.workspace().join("completions.bash");
    let text = lango.run(&["completions", "bash"]).ok().stdout;
    fs::write(&script, text).unwrap();
    // Calls the function as bash does on Tab: the command, the current word and the previous one.
    let complete = r#"
        source "$1"
        function=$(complete -p lango | sed 's/.* -F \([^ ]*\) .*/\1/')
        COMP_WORDS=(lango "${@:2}") COMP_CWORD=$(($# - 1))
        "$function" lango "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        echo "${COMPREPLY[@]}"
    "#;
    let cases: [(&[&str], &str); 4] = [
        (&["ses"], "sessions"),
        (&["sessions", "exp"], "export"),
        (&["run", "--sch"], "--schema"),
        (&["completions", "el"], "elvish"),
    ];
    for (words, expected) in cases {
        let output = Command::new("bash")
            .args(["--norc", "-c", complete, "bash"])
            .arg(&script)
            .args(words)
            .output()
            .unwrap();
        let problems = String::from_utf8_lossy(&output.stderr);
        let offered = String::from_utf8_lossy(&output.stdout);
        assert_eq!(offered.trim(), expected, "{words:?}: {problems}");
    }
}

#[test]
fn each_shell_has_a_script_and_others_are_refused() {
    let lango = Lango::new();
    let scripts = [
        ("bash", "complete -F _lango"),
        ("zsh", "#compdef lango"),
        ("fish", "complete -c lango"),
        ("elvish", "set edit:completion:arg-completer[lango]"),
        (
            "powershell",
            "Register-ArgumentCompleter -Native -CommandName 'lango'",
        ),
    ];
    for (shell, sign) in scripts {
        let script = lango.run(&["completions", shell]).ok().stdout;
        assert!(script.contains(sign), "{shell} has no `{sign}`");
        assert!(script.contains("sessions"), "{shell} knows no commands");
    }
    lango.run(&["completions", "tcsh"]).exits(2);
    assert!(!lango.home().exists(), "completions need no home");
}

#[test]
fn the_manual_page_names_every_command() {
    let lango = Lango::new();
    let page = lango.run(&["man"]).ok().stdout;
    assert!(page.contains(".TH lango 1"), "{page}");
    let names = commands(&lango, &[]);
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let reference = format!("lango\\-{name}(1)");
        assert!(page.contains(&reference), "the page lacks {name}");
    }
    assert!(page.contains("Exit codes: 0 ok"), "{page}");
    assert!(!lango.home().exists(), "the manual needs no home");
}

#[test]
fn every_command_gets_a_page_that_renders() {
    let lango = Lango::new();
    let folder = lango.workspace().join("share/man1");
    let shown = folder.to_str().unwrap();
    lango.run(&["man", shown]).ok();
    let mut pages = vec!["lango".to_owned()];
    for name in commands(&lango, &[]) {
        let below = commands(&lango, &[&name]);
        pages.extend(below.iter().map(|below| format!("lango-{name}-{below}")));
        pages.push(format!("lango-{name}"));
    }
    for title in pages {
        let page = fs::read_to_string(folder.join(format!("{title}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {title} 1")), "{page}");
        assert!(page.contains("Examples:"), "{title} has no examples");
    }
    let page = folder.join("lango-sessions-list.1");
    let arguments = ["-man", "-ww", "-Tascii", page.to_str().unwrap()];
    if let Some(output) = run_if_installed("groff", &arguments) {
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("lango sessions list"), "{text}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let lango = Lango::new();
    lango.file("taken", "");
    lango
        .run(&["man", "taken"])
        .refused(2, &["pages cannot be written to `taken`"]);
}
