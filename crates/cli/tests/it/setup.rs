//! `lango setup` through the real binary: what is asked, stored and written, at a terminal and in scripts.

use crate::lango::{BINARY, Lango, RunResult, finish};
use crate::models::Provider;
use crate::terminal::Terminal;
use lango_testkit::model::say;
use lango_testkit::wire_server::{ClosedPort, Fault, ScriptedAnswer};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(crate) const KEY: &str = "sk-canary-0123456789";

pub(crate) fn list() -> ScriptedAnswer {
    ScriptedAnswer::json(
        &json!({ "data": [{ "id": "embed-1" }, { "id": "small" }, { "id": "large" }] }),
    )
}

pub(crate) fn keys_file(lango: &Lango) -> PathBuf {
    lango.home().join("credentials/keys.toml")
}

pub(crate) fn config(lango: &Lango) -> String {
    fs::read_to_string(lango.home().join("lango.toml")).unwrap()
}

pub(crate) fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// Stores a key for a provider as `lango setup` does.
pub(crate) fn store_key(lango: &Lango, provider: &str, address: &str) {
    let text = format!("[{provider}]\naddress = \"{address}\"\nkey = \"{KEY}\"\n");
    lango.home_file("credentials/keys.toml", text);
    for (path, mode) in [
        (keys_file(lango), 0o600),
        (lango.home().join("credentials"), 0o700),
    ] {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
}

/// Runs setup with a key on standard input.
pub(crate) fn with_key(lango: &Lango, key: &str, arguments: &[&str]) -> RunResult {
    let arguments = [&["setup", "--key-stdin"], arguments].concat();
    lango.piped(&arguments, key)
}

pub(crate) fn keys_sent(provider: &Provider) -> Vec<String> {
    let requests = provider.server.requests();
    let keys = requests
        .iter()
        .map(|request| request.header("authorization"));
    keys.map(|key| key.unwrap_or("none").to_owned()).collect()
}

#[test]
fn a_key_typed_at_the_terminal_is_never_shown_and_only_its_owner_can_read_it() {
    let replies = ["ok", "hi", "ok"].map(|text| say(text).into());
    let answers = [list(), list()].into_iter().chain(replies).collect();
    let provider = Provider::new(answers);
    let lango = Lango::new();
    let url = provider.server.url();
    let script = format!("umask 000; exec {BINARY} setup");
    let mut terminal = Terminal::start_program(&lango, 120, &["sh", "-c", &script], &[]);
    let mut seen = terminal.wait_for("number, name or URL (");
    terminal.press(&format!("{url}\r"));
    seen += &terminal.wait_for("Enter if it needs none): ");
    terminal.press(&format!("  {KEY} \r"));
    seen += &terminal.wait_for("model, by number or name (Enter: small, q quits): ");
    terminal.press("\r");
    let (code, last) = terminal.end();
    seen += &last;
    assert_eq!(code, Some(0), "{seen}");
    assert!(!seen.contains("canary"), "{seen}");
    for part in [
        "Anthropic ",
        "needs an API key",
        "another OpenAI-compatible URL",
        "custom/large",
        "✓ custom/small answered in",
        "stored the key in",
    ] {
        assert!(seen.contains(part), "no `{part}` in {seen}");
    }
    let file = keys_file(&lango);
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    assert!(!config(&lango).contains("canary"), "{}", config(&lango));
    let left = file.parent().unwrap().read_dir().unwrap().count();
    assert_eq!(left, 1, "no temporary file is left");

    assert_eq!(lango.run(&["run", "hello"]).ok().stdout, "hi\n");
    let bearer = format!("Bearer {KEY}");
    let mut sent = keys_sent(&provider);
    assert_eq!(
        sent.remove(0),
        "none",
        "the address is checked without a key"
    );
    assert_eq!(sent, vec![bearer; 3]);
    for command in [
        &["config", "show", "--origin"][..],
        &["config", "show"],
        &["doctor"],
        &["doctor", "--json", "--offline"],
        &["paths"],
        &["models"],
    ] {
        let ran = lango.run(command);
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!shown.contains("canary"), "{shown}");
        let names_file =
            command.contains(&"--origin") || command[0] == "doctor" || command[0] == "paths";
        assert!(
            !names_file || shown.contains("credentials/keys.toml"),
            "{shown}"
        );
    }
}

#[test]
fn an_existing_configuration_keeps_its_comments_and_other_keys() {
    let provider = Provider::new(vec![say("ok"), say("ok")]);
    let lango = Lango::new();
    let before = "# mine\nagent.model = 'old/one' # why\n\n[agent.x]\n";
    lango.home_file("lango.toml", before);
    lango.run(&["setup", "--model", "a/b"]).exits(3);
    assert_eq!(config(&lango), before, "an invalid file is left alone");
    lango.home_file(
        "lango.toml",
        "# mine\n[agent] # agents\nmaxToolCalls = 7 # enough\nmodel = 'old/one' # why\n\n# other\n[session]\nuser = 'ann'\n",
    );
    let arguments = [
        "setup",
        "--provider",
        "mine",
        "--base-url",
        provider.server.url(),
        "--model",
        "mine/any",
    ];
    let ran = lango.run(&arguments).ok();
    assert!(
        ran.stdout.contains("mine/any answers from now on"),
        "{ran:#?}"
    );
    let url = provider.server.url();
    let expected = format!(
        "# mine\n[agent] # agents\nmaxToolCalls = 7 # enough\nmodel = \"mine/any\" # why\n\n# other\n[session]\nuser = 'ann'\n\n[providers.mine]\nbaseUrl = \"{url}\"\nkind = \"openai\"\n"
    );
    assert_eq!(config(&lango), expected);
    let ran = lango.run(&arguments).ok();
    assert!(ran.stdout.contains("already selects mine/any"), "{ran:#?}");
    assert_eq!(config(&lango), expected);
}

#[test]
fn a_key_that_appears_later_wins_over_the_demo() {
    let provider = Provider::new(vec![say("from the file"), say("from the variable")]);
    let lango = Lango::new();
    let mut terminal = Terminal::start(&lango, 120, &["setup"], &[]);
    terminal.wait_for("number, name or URL (");
    terminal.press("q\r");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0), "{last}");
    assert!(last.contains("nothing was written"), "{last}");
    assert!(!lango.home().exists());
    let url = provider.server.url();
    let address = format!("providers.groq.baseUrl={url}");
    let run = |env: &[(&str, &str)], more: &[&str]| {
        let mut command = lango.command(&[&["run", "-c", &address, "--json"], more].concat());
        finish(command.envs(env.iter().copied()), b"").ok()
    };
    let demo = run(&[], &["hello"]);
    assert_eq!(demo.json()["offline"], true);
    assert!(demo.stderr.contains("demo mode: "), "{demo:#?}");
    store_key(&lango, "groq", url);
    // The provider's list is not scripted, so lango takes its first preference.
    lango.home_file("model-lists/unrelated.json", "{}");
    let chosen = run(&[], &["-c", "agent.model=groq/any", "hello"]);
    assert_eq!(chosen.json()["answer"], "from the file");
    let variable = [
        "-c",
        "agent.model=groq/any",
        "-c",
        "providers.groq.apiKeyEnv=MINE",
        "hello",
    ];
    let chosen = run(&[("MINE", "sk-variable")], &variable);
    assert_eq!(chosen.json()["answer"], "from the variable");
    assert_eq!(
        keys_sent(&provider),
        [format!("Bearer {KEY}"), "Bearer sk-variable".to_owned()]
    );
    let checked = lango.run(&["config", "check", "-c", &address]).ok();
    assert!(checked.stdout.contains(" groq/"), "{checked:#?}");
    // The key is for this address only.
    let elsewhere = ClosedPort::new();
    let elsewhere = format!("providers.groq.baseUrl={}", elsewhere.url());
    let checked = lango.run(&["config", "check", "-c", &elsewhere]).ok();
    assert!(checked.stdout.contains("offline/rules"), "{checked:#?}");
}

#[test]
fn without_a_terminal_missing_answers_exit_2_with_the_command_to_run() {
    let provider = Provider::new(vec![list(), list(), say("ok").into()]);
    let lango = Lango::new();
    let url = provider.server.url();
    lango.run(&["setup"]).refused(
        2,
        &["no provider is given", "next: lango setup --provider "],
    );
    lango.run(&["setup", "--provider", "anthropic"]).refused(
        2,
        &[
            "needs a key",
            "next: lango setup --provider anthropic --key-stdin --yes < ",
        ],
    );
    let own = ["setup", "--provider", "mine", "--base-url", url];
    let next = format!("next: lango setup --provider mine --base-url {url} --model mine/small");
    lango.run(&own).refused(2, &["no model of `mine`", &next]);
    lango
        .run(&["setup", "--provider", "nonsense"])
        .refused(2, &["no provider `nonsense`", "--base-url"]);
    lango
        .run(&["setup", "--model", "offline"])
        .refused(2, &["the demo needs no setup"]);
    let with_password = url.replace("://", "://user:canary@");
    let arguments = [
        "setup",
        "--provider",
        "mine",
        "--base-url",
        &with_password,
        "--model",
        "x",
    ];
    let ran = lango.run(&arguments).refused(2, &["user name or password"]);
    assert!(!ran.stderr.contains("canary"), "{ran:#?}");
    for key in ["", "two words", "line\nbreak"] {
        with_key(&lango, key, &["--provider", "mine", "--base-url", url])
            .refused(2, &["not an API key"]);
    }
    assert!(!lango.home().exists());
    lango.run(&[&own[..], &["--yes"]].concat()).ok();
    assert!(
        config(&lango).contains("model = \"mine/small\""),
        "{}",
        config(&lango)
    );
}

#[test]
fn a_refused_key_can_be_typed_again() {
    let provider = Provider::new(vec![list(), Fault::BadKey.into(), list(), say("ok").into()]);
    let lango = Lango::new();
    let arguments = [
        "setup",
        "--provider",
        "groq",
        "--base-url",
        provider.server.url(),
    ];
    let mut terminal = Terminal::start(&lango, 120, &arguments, &[]);
    terminal.wait_for("API key of groq (");
    terminal.press("sk-wrong\r");
    terminal.wait_for("its key is not accepted");
    terminal.wait_for("API key of groq (");
    terminal.press(&format!("{KEY}\r"));
    terminal.wait_for("model, by number or name (");
    terminal.press("groq/large\r");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0), "{last}");
    assert!(config(&lango).contains("model = \"groq/large\""));
    let sent = keys_sent(&provider);
    assert_eq!(sent[..2], ["none", "Bearer sk-wrong"]);
    assert_eq!(sent[2..], vec![format!("Bearer {KEY}"); 2]);
}

#[test]
fn ctrl_c_at_any_point_writes_nothing_and_restores_the_terminal() {
    // Each time, the address is checked before the key is asked for.
    let lists = std::iter::repeat_with(list).take(5);
    let silent = ScriptedAnswer::from(Fault::SilentBeforeHead);
    let provider = Provider::new(lists.chain([silent]).collect());
    let lango = Lango::new();
    let url = provider.server.url();
    // Ctrl-C goes to the shell too.
    let script = format!(
        "trap : INT; {BINARY} setup --provider mine --base-url {url}; echo \"code $?\"; stty -a"
    );
    let steps = [
        ("API key of mine (", KEY),
        ("model, by number or name (", ""),
        ("calling mine/small", ""),
    ];
    for stop in 0..steps.len() {
        let mut terminal = Terminal::start_program(&lango, 120, &["sh", "-c", &script], &[]);
        for (index, (prompt, answer)) in steps.iter().enumerate() {
            terminal.wait_for(prompt);
            if index == stop {
                break;
            }
            terminal.press(&format!("{answer}\r"));
        }
        terminal.press("\u{3}");
        terminal.wait_for("code 130");
        let (_, settings) = terminal.end();
        let words: Vec<&str> = settings.split_whitespace().collect();
        for word in ["echo", "icanon", "isig"] {
            assert!(words.contains(&word), "at {stop}: {settings}");
        }
        assert!(!settings.contains("canary"), "{settings}");
        assert!(!lango.home().exists(), "at {stop}");
    }
}
