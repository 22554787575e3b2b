//! Tests of the checks of a command, without starting anything.

use super::*;
use crate::settings::{EnvVariable, HiddenText};
use lango_sandbox::{Policy, ResourceLimits};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

/// A workspace that agents can write, a private directory, and a directory for copies.
struct Fixture {
    _folder: TempDir,
    root: PathBuf,
    program: ProgramSettings,
    trusted: TrustedFiles,
}

impl Fixture {
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
        let program = ProgramSettings {
            argv: argv.collect(),
            env: Vec::new(),
            proxy: None,
            data: Vec::new(),
            policy: Policy::of(root.join("private")),
            limits: ResourceLimits::default(),
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

    fn trust(&mut self) {
        let pending = self.command().pending_files(&self.trusted).unwrap();
        for file in pending {
            self.command().store(&file).unwrap();
            self.trusted.insert(key(&file.path), file.digest);
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.program.env.push(EnvVariable {
            name: name.to_owned(),
            is_passed_on: false,
            value: Some(HiddenText::new(value)),
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
fn a_copy_of_the_trusted_bytes_runs() {
    let mut fixture = Fixture::new(&["python3", "{workspace}/server.py"]);
    fixture.refuses("you have not trusted it yet; read it, then run `lango mcp trust toy`");
    fixture.trust();
    let argv = fixture.prepare().unwrap().argv;
    let copy = PathBuf::from(&argv[1]);
    assert!(copy.starts_with(fixture.root.join("copies")), "{argv:?}");
    assert_eq!(copy.file_name().unwrap(), "server.py");
    // Replaced after the check, but the copy is unchanged.
    fs::write(fixture.root.join("work/server.py"), "swapped").unwrap();
    assert_eq!(fs::read_to_string(&copy).unwrap(), "trusted");
    fixture.refuses("changed since you trusted it (SHA-256 ");
    let pending = fixture.command().pending_files(&fixture.trusted).unwrap();
    let texts = pending[0].texts.clone().unwrap();
    assert_eq!(texts, ("trusted".to_owned(), "swapped".to_owned()));
}

#[test]
fn a_damaged_copy_is_written_again() {
    let mut fixture = Fixture::new(&["python3", "{workspace}/server.py"]);
    fixture.trust();
    let copy = PathBuf::from(fixture.prepare().unwrap().argv.remove(1));
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&copy, "damaged").unwrap();
    fixture.prepare().unwrap();
    assert_eq!(fs::read_to_string(&copy).unwrap(), "trusted");
}

#[test]
fn a_program_that_agents_can_write_is_pinned_and_stays_executable() {
    let mut fixture = Fixture::new(&["{workspace}/run.sh", "x"]);
    let script = fixture.root.join("work/run.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fixture.refuses("run.sh`, and you have not trusted it yet");
    fixture.trust();
    let copy = PathBuf::from(fixture.prepare().unwrap().argv.remove(0));
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o500);
}

#[test]
fn a_link_that_agents_can_redirect_is_pinned_by_its_target() {
    let mut fixture = Fixture::new(&["python3", "{workspace}/link.py"]);
    fs::write(fixture.root.join("safe/good.py"), "good").unwrap();
    symlink(
        fixture.root.join("safe/good.py"),
        fixture.root.join("work/link.py"),
    )
    .unwrap();
    fixture.refuses("you have not trusted it yet");
    fixture.trust();
    fixture.prepare().unwrap();
    fs::remove_file(fixture.root.join("work/link.py")).unwrap();
    symlink("server.py", fixture.root.join("work/link.py")).unwrap();
    fixture.refuses("you have not trusted it yet");
}

#[test]
fn a_missing_file_or_a_folder_in_its_place_is_refused() {
    let mut fixture = Fixture::new(&["ruby", "{workspace}/server.py"]);
    fixture.trust();
    fs::remove_file(fixture.root.join("work/server.py")).unwrap();
    fixture.refuses("does not exist, and agents could create it at any time");
    fs::create_dir(fixture.root.join("work/server.py")).unwrap();
    fixture.refuses("is a folder but must be a file");
    // Never trusted, and a folder only during the check.
    fixture.trusted.clear();
    fixture.refuses("runs code from `");
}

#[test]
fn code_in_a_folder_that_agents_can_write_is_refused() {
    for argv in [
        &["python3", "{workspace}"] as &[&str],
        &["node", "--no-warnings", "{workspace}/folder"],
        &["npx", "{workspace}/folder"],
        &["uvx", "--from", "{workspace}/folder", "cmd"],
        &["uvx", "--from={workspace}", "cmd"],
    ] {
        Fixture::new(argv).refuses("which agents can write; name a single file");
    }
    // Declaring a script as data does not let it run without a pin.
    let mut fixture = Fixture::new(&["python3", "{workspace}/server.py"]);
    fixture.program.data = vec!["{workspace}/server.py".to_owned()];
    fixture.refuses("which agents can write; name a single file");
}

#[test]
fn folders_files_that_agents_cannot_write_and_declared_data_need_no_trust() {
    let mut fixture = Fixture::new(&[
        "{root}/safe/tool",
        "{workspace}",
        "--root={workspace}/folder",
        "{root}/safe/x.py",
        "--db={workspace}/app.db",
        "{workspace}/server.py",
        "plain",
    ]);
    fs::write(fixture.root.join("safe/x.py"), "").unwrap();
    fixture.program.data = vec![
        "{workspace}/app.db".to_owned(),
        "{workspace}/server.py".to_owned(),
    ];
    let work = fixture.root.join("work").display().to_string();
    let argv = fixture.prepare().unwrap().argv;
    assert_eq!(argv[1], work);
    assert_eq!(argv[4], format!("--db={work}/app.db"));
    assert_eq!(argv[5], format!("{work}/server.py"));
}

#[test]
fn a_file_after_an_option_is_pinned_too() {
    let mut fixture = Fixture::new(&["node", "--require={workspace}/server.py", "-e", "1"]);
    fixture.refuses("you have not trusted it yet");
    fixture.trust();
    let argv = fixture.prepare().unwrap().argv;
    let copies = fixture.root.join("copies").display().to_string();
    assert!(
        argv[1].starts_with(&format!("--require={copies}/")),
        "{argv:?}"
    );
}

#[test]
fn a_script_whose_interpreter_agents_can_write_is_refused_even_when_it_is_trusted() {
    let mut fixture = Fixture::new(&["{root}/safe/tool"]);
    let line = format!("#!{}/work/venv/bin/python\n", fixture.root.display());
    fs::write(fixture.root.join("safe/tool"), &line).unwrap();
    fixture.refuses("install the server outside of their folders");

    fixture.program.argv = vec!["{workspace}/tool".to_owned()];
    fs::write(fixture.root.join("work/tool"), &line).unwrap();
    fixture.refuses("install the server outside of their folders");
}

#[test]
fn a_search_path_that_agents_can_write_is_refused() {
    let mut fixture = Fixture::new(&["python3", "-m", "server"]);
    fixture.prepare().unwrap();
    fixture.set("PATH", "{workspace}/bin:/usr/bin");
    fixture.refuses("where agents can write; remove that path from PATH");
    let mut fixture = Fixture::new(&["python3", "-m", "server"]);
    fixture.set("PYTHONPATH", "/opt/lib:{workspace}");
    fixture.refuses("where agents can write; remove that path from PYTHONPATH");
}

#[test]
fn python_does_not_load_modules_from_the_current_directory_unless_configured() {
    let mut fixture = Fixture::new(&["python3", "-m", "server"]);
    fixture.set("ROOT", "{workspace}/folder");
    let env = fixture.prepare().unwrap().env;
    let folder = fixture.root.join("work/folder").display().to_string();
    let expected = [("ROOT", folder.as_str()), ("PYTHONSAFEPATH", "1")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(env, expected);
    fixture.set("PYTHONSAFEPATH", "");
    let env = fixture.prepare().unwrap().env;
    assert_eq!(env[1], ("PYTHONSAFEPATH".to_owned(), String::new()));
}

#[test]
fn a_value_that_is_passed_on_is_not_expanded() {
    let mut fixture = Fixture::new(&["python3"]);
    fixture.set("PASSED", "{workspace}");
    fixture.program.env[0].is_passed_on = true;
    let env = fixture.prepare().unwrap().env;
    assert_eq!(env[0].1, "{workspace}");
    assert!(!ProgramSettings::names_workspace(
        &fixture.program.argv,
        &fixture.program.env
    ));
}

#[test]
fn arguments_meant_relative_to_the_workspace_get_a_hint() {
    let fixture = Fixture::new(&["git-server", "--root", ".", "./folder", "server.py", "x"]);
    let hints = fixture.command().hints(false);
    assert_eq!(hints.len(), 2, "{hints:?}");
    assert!(hints[0].ends_with("write `{workspace}`"), "{hints:?}");
    assert!(
        hints[1].ends_with("write `{workspace}/folder`"),
        "{hints:?}"
    );
    let hints = fixture.command().hints(true);
    assert_eq!(hints.len(), 3, "{hints:?}");
    assert!(
        hints[2].ends_with("write `{workspace}/server.py`"),
        "{hints:?}"
    );
}

#[test]
fn a_writable_path_inside_an_argument_is_refused_unless_it_is_declared_data() {
    for argv in [
        &["perl", "-I{workspace}/lib", "/opt/x.pl"] as &[&str],
        &["server", "--a=b={workspace}/server.py"],
        &["python3", "-c", "import sys; sys.path[0] = '{workspace}'"],
        &["sh", "-c", "exec python3 {workspace}/server.py"],
        &["java", "-javaagent:{workspace}/x.jar", "Main"],
        &["npx", "--node-options=-r={workspace}/x", "pkg@1.2.3"],
    ] {
        let mut fixture = Fixture::new(argv);
        fixture.refuses("which agents can write, at a place where lango cannot pin it");
        fixture.refuses("list the whole argument in mcp.servers.toy.data");
        fixture.program.data = fixture.program.argv[1..].to_vec();
        // Not all of these programs exist here.
        fixture.command().check(&fixture.trusted).unwrap();
    }
}

#[test]
fn an_interpreter_option_cannot_load_a_folder_that_agents_can_write() {
    for argv in [
        &["perl", "-I", "{workspace}/folder", "/opt/x.pl"] as &[&str],
        &["env", "ruby", "-I", "{workspace}/folder", "/opt/x.rb"],
        &["node", "--import={workspace}/folder", "/opt/x.js"],
        &["java", "-cp", "{workspace}/folder", "Main"],
    ] {
        Fixture::new(argv).refuses("which agents can write; name a single file");
    }
}

#[test]
fn variables_that_load_code_from_writable_paths_are_refused() {
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
        let expected = format!("remove that path from {name}");
        let mut fixture = Fixture::new(&["server"]);
        fixture.set(name, value);
        fixture.refuses(&expected);
        let word = format!("{name}={value}");
        for argv in [
            &["env", &word, "server"] as &[&str],
            &["env", "-u", "X", "A=1", &word, "server"],
            &["nice", "/usr/bin/env", &word, "server"],
        ] {
            Fixture::new(argv).refuses(&expected);
        }
    }
}

#[test]
fn a_package_without_a_version_is_refused_after_other_programs_too() {
    for argv in [
        &["env", "-u", "X", "npx", "pkg"] as &[&str],
        &["env", "-S", "npx pkg"],
        &["nice", "npx", "pkg"],
        &["npm", "--prefix", "/opt", "exec", "pkg"],
        &["uv", "run", "--with", "pkg", "cmd"],
        &["deno", "run", "npm:pkg"],
    ] {
        Fixture::new(argv).refuses("`pkg` has no exact version");
    }
}

#[test]
fn a_shell_command_is_not_mistaken_for_a_folder_with_that_name() {
    for line in ["{workspace}/run.sh --flag", "x={workspace}/run.sh; $x"] {
        let mut fixture = Fixture::new(&["sh", "-c", line]);
        for name in ["run.sh --flag", "run.sh; $x"] {
            fs::create_dir(fixture.root.join("work").join(name)).unwrap();
        }
        fixture.refuses("at a place where lango cannot pin it");
        fixture.program.data = vec![line.to_owned()];
        fixture.prepare().unwrap();
    }
}
