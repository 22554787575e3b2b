//! What a command may run, decided without starting anything.

use super::*;
use crate::settings::{Secret, Variable};
use lango_sandbox::{Limits, Policy};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

/// A workspace that agents write, a private directory, and a place for copies.
struct Place {
    _folder: TempDir,
    root: PathBuf,
    program: Program,
    trusted: TrustedFiles,
}

impl Place {
    fn new(argv: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work/folder", "private", "safe"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("work/server.py"), "trusted").unwrap();
        let argv = argv
            .iter()
            .map(|word| word.replace("{root}", root.to_str().unwrap()));
        let program = Program {
            argv: argv.collect(),
            env: Vec::new(),
            proxy: None,
            data: Vec::new(),
            policy: Policy::of(root.join("private")),
            limits: Limits::default(),
            agents: Policy::of(root.join("work")),
            copies: root.join("copies"),
        };
        Self {
            _folder: folder,
            root,
            program,
            trusted: TrustedFiles::new(),
        }
    }

    fn command(&self) -> ServerCommand<'_> {
        ServerCommand {
            server: "toy",
            program: &self.program,
        }
    }

    fn prepare(&self) -> Result<PreparedCommand, ConnectError> {
        self.command().prepare(&self.trusted)
    }

    /// Trusts all that waits for it.
    fn trust(&mut self) {
        let pending = self.command().pending_files(&self.trusted).unwrap();
        for file in pending {
            self.command().store(&file).unwrap();
            self.trusted.insert(key(&file.path), file.digest);
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.program.env.push(Variable {
            name: name.to_owned(),
            is_passed_on: false,
            value: Some(Secret::new(value)),
        });
    }

    #[track_caller]
    fn refuses(&self, expected: &str) {
        let error = self.prepare().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(
            self.command().check(&self.trusted).unwrap_err().to_string(),
            error
        );
    }
}

#[test]
fn what_runs_is_a_copy_of_the_bytes_that_are_trusted() {
    let mut place = Place::new(&["python3", "{workspace}/server.py"]);
    place.refuses("you have not trusted it yet; read it, then run `lango mcp trust toy`");
    place.trust();
    let argv = place.prepare().unwrap().argv;
    let copy = PathBuf::from(&argv[1]);
    assert!(copy.starts_with(place.root.join("copies")), "{argv:?}");
    assert_eq!(copy.file_name().unwrap(), "server.py");
    // Swapped after the check: the copy is what it was.
    fs::write(place.root.join("work/server.py"), "swapped").unwrap();
    assert_eq!(fs::read_to_string(&copy).unwrap(), "trusted");
    place.refuses("changed since you trusted it (SHA-256 ");
    let pending = place.command().pending_files(&place.trusted).unwrap();
    let texts = pending[0].texts.clone().unwrap();
    assert_eq!(texts, ("trusted".to_owned(), "swapped".to_owned()));
}

#[test]
fn a_copy_that_was_damaged_is_written_again() {
    let mut place = Place::new(&["python3", "{workspace}/server.py"]);
    place.trust();
    let copy = PathBuf::from(place.prepare().unwrap().argv.remove(1));
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&copy, "damaged").unwrap();
    place.prepare().unwrap();
    assert_eq!(fs::read_to_string(&copy).unwrap(), "trusted");
}

#[test]
fn a_program_that_agents_can_write_is_pinned_with_its_right_to_run() {
    let mut place = Place::new(&["{workspace}/run.sh", "x"]);
    let script = place.root.join("work/run.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    place.refuses("run.sh`, and you have not trusted it yet");
    place.trust();
    let copy = PathBuf::from(place.prepare().unwrap().argv.remove(0));
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o500);
}

#[test]
fn a_link_that_agents_can_turn_elsewhere_is_pinned_by_what_it_leads_to() {
    let mut place = Place::new(&["python3", "{workspace}/link.py"]);
    fs::write(place.root.join("safe/good.py"), "good").unwrap();
    symlink(
        place.root.join("safe/good.py"),
        place.root.join("work/link.py"),
    )
    .unwrap();
    place.refuses("you have not trusted it yet");
    place.trust();
    place.prepare().unwrap();
    fs::remove_file(place.root.join("work/link.py")).unwrap();
    symlink("server.py", place.root.join("work/link.py")).unwrap();
    place.refuses("you have not trusted it yet");
}

#[test]
fn a_file_that_is_gone_or_became_a_folder_is_refused() {
    let mut place = Place::new(&["ruby", "{workspace}/server.py"]);
    place.trust();
    fs::remove_file(place.root.join("work/server.py")).unwrap();
    place.refuses("does not exist, and agents could write it at any moment");
    fs::create_dir(place.root.join("work/server.py")).unwrap();
    place.refuses("is a folder, and should be a file");
    // Never trusted, and a folder only for the moment of the check.
    place.trusted.clear();
    place.refuses("runs code from `");
}

#[test]
fn code_in_a_folder_of_agents_is_refused_however_it_is_named() {
    for argv in [
        &["python3", "{workspace}"] as &[&str],
        &["node", "--no-warnings", "{workspace}/folder"],
        &["npx", "{workspace}/folder"],
        &["uvx", "--from", "{workspace}/folder", "cmd"],
        &["uvx", "--from={workspace}", "cmd"],
    ] {
        Place::new(argv).refuses("which agents can write; name a single file");
    }
    // Naming a script as data does not let it run unpinned.
    let mut place = Place::new(&["python3", "{workspace}/server.py"]);
    place.program.data = vec!["{workspace}/server.py".to_owned()];
    place.refuses("which agents can write; name a single file");
}

#[test]
fn folders_files_out_of_reach_and_named_data_need_no_trust() {
    let mut place = Place::new(&[
        "{root}/safe/tool",
        "{workspace}",
        "--root={workspace}/folder",
        "{root}/safe/x.py",
        "--db={workspace}/app.db",
        "{workspace}/server.py",
        "plain",
    ]);
    fs::write(place.root.join("safe/x.py"), "").unwrap();
    place.program.data = vec![
        "{workspace}/app.db".to_owned(),
        "{workspace}/server.py".to_owned(),
    ];
    let work = place.root.join("work").display().to_string();
    let argv = place.prepare().unwrap().argv;
    assert_eq!(argv[1], work);
    assert_eq!(argv[4], format!("--db={work}/app.db"));
    assert_eq!(argv[5], format!("{work}/server.py"));
}

#[test]
fn a_file_behind_an_option_is_pinned_too() {
    let mut place = Place::new(&["node", "--require={workspace}/server.py", "-e", "1"]);
    place.refuses("you have not trusted it yet");
    place.trust();
    let argv = place.prepare().unwrap().argv;
    let copies = place.root.join("copies").display().to_string();
    assert!(
        argv[1].starts_with(&format!("--require={copies}/")),
        "{argv:?}"
    );
}

#[test]
fn a_script_whose_interpreter_agents_can_write_is_refused_even_when_it_is_trusted() {
    let mut place = Place::new(&["{root}/safe/tool"]);
    let line = format!("#!{}/work/venv/bin/python\n", place.root.display());
    fs::write(place.root.join("safe/tool"), &line).unwrap();
    place.refuses("install the server outside of their folders");

    place.program.argv = vec!["{workspace}/tool".to_owned()];
    fs::write(place.root.join("work/tool"), &line).unwrap();
    place.refuses("install the server outside of their folders");
}

#[test]
fn a_search_path_with_a_folder_of_agents_is_refused() {
    let mut place = Place::new(&["python3", "-m", "server"]);
    place.prepare().unwrap();
    place.set("PATH", "{workspace}/bin:/usr/bin");
    place.refuses("where agents can write; take that path out of PATH");
    let mut place = Place::new(&["python3", "-m", "server"]);
    place.set("PYTHONPATH", "/opt/lib:{workspace}");
    place.refuses("where agents can write; take that path out of PYTHONPATH");
}

#[test]
fn python_loads_nothing_from_the_directory_it_starts_in_unless_the_user_says_so() {
    let mut place = Place::new(&["python3", "-m", "server"]);
    place.set("ROOT", "{workspace}/folder");
    let env = place.prepare().unwrap().env;
    let folder = place.root.join("work/folder").display().to_string();
    let expected = [("ROOT", folder.as_str()), ("PYTHONSAFEPATH", "1")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(env, expected);
    place.set("PYTHONSAFEPATH", "");
    let env = place.prepare().unwrap().env;
    assert_eq!(env[1], ("PYTHONSAFEPATH".to_owned(), String::new()));
}

#[test]
fn a_value_that_is_passed_on_is_left_as_it_is() {
    let mut place = Place::new(&["python3"]);
    place.set("PASSED", "{workspace}");
    place.program.env[0].is_passed_on = true;
    let env = place.prepare().unwrap().env;
    assert_eq!(env[0].1, "{workspace}");
    assert!(!Program::names_workspace(
        &place.program.argv,
        &place.program.env
    ));
}

#[test]
fn words_that_were_meant_from_the_workspace_get_a_hint() {
    let place = Place::new(&["git-server", "--root", ".", "./folder", "server.py", "x"]);
    let hints = place.command().hints(false);
    assert_eq!(hints.len(), 2, "{hints:?}");
    assert!(hints[0].ends_with("write `{workspace}`"), "{hints:?}");
    assert!(
        hints[1].ends_with("write `{workspace}/folder`"),
        "{hints:?}"
    );
    let hints = place.command().hints(true);
    assert_eq!(hints.len(), 3, "{hints:?}");
    assert!(
        hints[2].ends_with("write `{workspace}/server.py`"),
        "{hints:?}"
    );
}

#[test]
fn a_path_of_agents_inside_of_a_word_is_refused_unless_the_word_is_data() {
    for argv in [
        &["perl", "-I{workspace}/lib", "/opt/x.pl"] as &[&str],
        &["server", "--a=b={workspace}/server.py"],
        &["python3", "-c", "import sys; sys.path[0] = '{workspace}'"],
        &["sh", "-c", "exec python3 {workspace}/server.py"],
        &["java", "-javaagent:{workspace}/x.jar", "Main"],
        &["npx", "--node-options=-r={workspace}/x", "pkg@1.2.3"],
    ] {
        let mut place = Place::new(argv);
        place.refuses("which agents can write, at a place where lango cannot pin it");
        place.refuses("list the whole word in mcp.servers.toy.data");
        place.program.data = place.program.argv[1..].to_vec();
        place.prepare().unwrap();
    }
}

#[test]
fn a_folder_of_agents_is_not_loaded_by_an_option_of_an_interpreter() {
    for argv in [
        &["perl", "-I", "{workspace}/folder", "/opt/x.pl"] as &[&str],
        &["env", "ruby", "-I", "{workspace}/folder", "/opt/x.rb"],
        &["node", "--import={workspace}/folder", "/opt/x.js"],
        &["java", "-cp", "{workspace}/folder", "Main"],
    ] {
        Place::new(argv).refuses("which agents can write; name a single file");
    }
}

#[test]
fn variables_that_load_code_are_refused_however_they_are_set() {
    for (name, value) in [
        ("NODE_OPTIONS", "--require={workspace}/hook.js"),
        ("BASH_ENV", "{workspace}/x.sh"),
        ("PERL5OPT", "-I{workspace}/lib -MEvil"),
        ("PYTHONHOME", "{workspace}"),
        ("PYTHONPATH", "../work"),
        ("LD_PRELOAD", "{workspace}/x.so"),
        ("LD_AUDIT", "{workspace}/x.so"),
        ("GIT_CONFIG_GLOBAL", "{workspace}/config"),
    ] {
        let expected = format!("take that path out of {name}");
        let mut place = Place::new(&["server"]);
        place.set(name, value);
        place.refuses(&expected);
        let word = format!("{name}={value}");
        for argv in [
            &["env", &word, "server"] as &[&str],
            &["env", "-u", "X", "A=1", &word, "server"],
            &["nice", "/usr/bin/env", &word, "server"],
        ] {
            Place::new(argv).refuses(&expected);
        }
    }
}

#[test]
fn a_package_without_a_version_is_refused_behind_other_programs_too() {
    for argv in [
        &["env", "-u", "X", "npx", "pkg"] as &[&str],
        &["env", "-S", "npx pkg"],
        &["nice", "npx", "pkg"],
        &["npm", "--prefix", "/opt", "exec", "pkg"],
        &["uv", "run", "--with", "pkg", "cmd"],
        &["deno", "run", "npm:pkg"],
    ] {
        Place::new(argv).refuses("`pkg` has no exact version");
    }
}

#[test]
fn a_line_for_a_shell_is_no_folder_even_if_agents_create_one_of_its_name() {
    for line in ["{workspace}/run.sh --flag", "x={workspace}/run.sh; $x"] {
        let mut place = Place::new(&["sh", "-c", line]);
        for name in ["run.sh --flag", "run.sh; $x"] {
            fs::create_dir(place.root.join("work").join(name)).unwrap();
        }
        place.refuses("at a place where lango cannot pin it");
        place.program.data = vec![line.to_owned()];
        place.prepare().unwrap();
    }
}
