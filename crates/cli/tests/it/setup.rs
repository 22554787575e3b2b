//! `lango setup` through the real binary: what is asked, stored and written, at a terminal and in scripts.

use crate::lango::{BINARY, Lango, RunResult, finish};
use crate::models::Provider;
use crate::secrets::PASSPHRASE;
use crate::terminal::Terminal;
use lango_testkit::model::say;
use lango_testkit::wire_server::{ClosedPort, Fault, ScriptedAnswer};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

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
fn store_key(lango: &Lango, provider: &str, address: &str) {
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

fn keys_sent(provider: &Provider) -> Vec<String> {
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
fn a_stored_key_is_masked_in_what_a_provider_and_a_command_repeat() {
    let echo = Fault::status(401, &format!("wrong key {KEY}"));
    let provider = Provider::new(vec![say("ok").into(), ScriptedAnswer::from(echo)]);
    let lango = Lango::new();
    let arguments = [
        "--provider",
        "mine",
        "--base-url",
        provider.server.url(),
        "--model",
        "any",
    ];
    with_key(&lango, KEY, &arguments).ok();
    let ran = lango.run(&["run", "hello"]).exits(3);
    assert!(ran.stderr.contains("wrong key [secret mine]"), "{ran:#?}");
    assert!(!format!("{ran:?}").contains("canary"), "{ran:#?}");
    // An agent's command that finds the key elsewhere does not show it to the model either.
    lango.file("leak.txt", format!("the key is {KEY}\n"));
    let ran = lango.run(&[
        "run",
        "-c",
        "agent.model=offline",
        "--json",
        "read leak.txt",
    ]);
    assert!(ran.stdout.contains("[secret mine]"), "{ran:#?}");
    assert!(!ran.stdout.contains("canary"), "{ran:#?}");
}

#[test]
fn agents_cannot_see_the_stored_keys() {
    let lango = Lango::new();
    let inside = lango.workspace().join("home");
    let lango = lango.using_home(&inside);
    store_key(&lango, "mine", "https://api.example.com");
    for question in [
        "read home/credentials/keys.toml",
        "use exec {\"command\": \"cat home/credentials/keys.toml\"}",
    ] {
        let arguments = [
            "run",
            "-c",
            "approval.rules=[{action='allow'}]",
            "--json",
            question,
        ];
        let ran = lango.run(&arguments);
        assert!(!ran.stdout.contains("api.example.com"), "{ran:#?}");
    }
}

#[test]
fn a_link_in_place_of_the_file_of_keys_is_refused_and_nothing_is_written() {
    let provider = Provider::new(vec![say("ok"), say("ok")]);
    let lango = Lango::new();
    lango.file("target", "untouched");
    let target = lango.workspace().join("target");
    fs::create_dir_all(lango.home().join("credentials")).unwrap();
    fs::set_permissions(
        lango.home().join("credentials"),
        PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    symlink(&target, keys_file(&lango)).unwrap();
    let arguments = [
        "--provider",
        "mine",
        "--base-url",
        provider.server.url(),
        "--model",
        "any",
    ];
    with_key(&lango, KEY, &arguments).refused(3, &["symbolic link", "keys.toml"]);
    assert_eq!(fs::read(&target).unwrap(), b"untouched");
    assert!(!lango.home().join("lango.toml").exists());
    // A turn says so too instead of answering with the demo.
    lango
        .run(&["run", "hello"])
        .refused(3, &["symbolic link", "keys.toml"]);
    let doctor = lango.run(&["doctor"]).exits(3).stdout;
    assert!(
        doctor.contains("✗ keys           the file of keys"),
        "{doctor}"
    );
}

#[test]
fn a_file_of_keys_that_others_can_read_is_refused() {
    let lango = Lango::new();
    store_key(&lango, "groq", "https://api.groq.com");
    fs::set_permissions(keys_file(&lango), PermissionsExt::from_mode(0o644)).unwrap();
    lango
        .run(&["run", "hello"])
        .refused(3, &["other users can access it", "chmod 600"]);
    lango
        .run(&["run", "-c", "agent.model=groq/any", "hello"])
        .refused(3, &["GROQ_API_KEY (not set)", "chmod 600"]);
}

#[test]
fn a_file_of_keys_that_others_can_read_stops_a_request_that_may_need_a_key_from_it() {
    let provider = Provider::new(vec![say("with the variable")]);
    let lango = Lango::new();
    let url = provider.server.url();
    store_key(&lango, "mine", url);
    fs::set_permissions(keys_file(&lango), PermissionsExt::from_mode(0o644)).unwrap();
    let config = format!(
        "agent.model = 'mine/any'\nproviders.mine = {{ kind = 'openai', baseUrl = '{url}' }}"
    );
    lango.home_file("lango.toml", config);
    let file = keys_file(&lango);
    let next = format!("next: run `chmod 600 {}`", file.display());
    let ran = lango.run(&["run", "hello"]);
    ran.refused(3, &["other users can access it", &next]);
    assert!(provider.server.requests().is_empty());
    // A variable with the key is another source.
    let arguments = ["run", "-c", "providers.mine.apiKeyEnv=MINE", "hello"];
    let mut command = lango.command(&arguments);
    let ran = finish(command.env("MINE", "sk-variable"), b"").ok();
    assert_eq!(ran.stdout, "with the variable\n");
    assert_eq!(keys_sent(&provider), ["Bearer sk-variable"]);
}

#[test]
fn an_existing_vault_gets_the_key_and_the_configuration_names_it() {
    let provider = Provider::new(vec![say("ok"), say("hi")]);
    let lango = Lango::new();
    crate::secrets::set(&lango, "OTHER", "other-value").ok();
    let url = provider.server.url();
    let arguments = [
        "setup",
        "--key-stdin",
        "--provider",
        "my-own",
        "--base-url",
        url,
        "--model",
        "any",
    ];
    // Without the passphrase the key is stored nowhere, not even in the file.
    let ran = lango.piped(&arguments, KEY).exits(3);
    assert!(ran.stderr.contains("the vault of `local`"), "{ran:#?}");
    assert!(!keys_file(&lango).exists() && !lango.home().join("lango.toml").exists());
    let mut command = lango.command(&arguments);
    command
        .env("LANGO_VAULT_PASSPHRASE", PASSPHRASE)
        .stdin(Stdio::piped());
    let ran = finish(&mut command, KEY.as_bytes()).ok();
    assert!(
        ran.stdout.contains("in the vault as MY_OWN_API_KEY"),
        "{ran:#?}"
    );
    assert!(!keys_file(&lango).exists());
    assert!(config(&lango).contains("apiKeyEnv = \"secret:MY_OWN_API_KEY\""));
    let mut command = lango.command(&["run", "hello"]);
    let ran = finish(command.env("LANGO_VAULT_PASSPHRASE", PASSPHRASE), b"").ok();
    assert_eq!(ran.stdout, "hi\n");
    assert_eq!(keys_sent(&provider), vec![format!("Bearer {KEY}"); 2]);
}

#[test]
fn a_secret_that_the_provider_does_not_use_is_not_replaced() {
    let provider = Provider::new(vec![say("ok"), say("ok"), say("hi")]);
    let lango = Lango::new();
    crate::secrets::set(&lango, "ACME_API_KEY", "other-value").ok();
    let url = provider.server.url();
    let own = ["setup", "--key-stdin", "--provider", "acme", "--base-url"];
    let arguments = [&own[..], &[url, "--model", "any"]].concat();
    let run = || {
        let mut command = lango.command(&arguments);
        command
            .env("LANGO_VAULT_PASSPHRASE", PASSPHRASE)
            .stdin(Stdio::piped());
        finish(&mut command, KEY.as_bytes())
    };
    let setting = ["providers.acme.apiKeyEnv", "secret:ACME_API_KEY"];
    let command = format!("lango config set {}", setting.join(" "));
    let ran = run().exits(2);
    assert!(
        ran.stderr.contains("another secret `ACME_API_KEY`"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains(&command), "{ran:#?}");
    assert!(!lango.home().join("lango.toml").exists());
    lango.run(&[&["config", "set"], &setting[..]].concat()).ok();
    run().ok();
    let mut command = lango.command(&["run", "hello"]);
    finish(command.env("LANGO_VAULT_PASSPHRASE", PASSPHRASE), b"").ok();
    assert_eq!(keys_sent(&provider).last(), Some(&format!("Bearer {KEY}")));
}

#[test]
fn a_configuration_that_cannot_be_written_leaves_the_old_key() {
    let provider = Provider::new(vec![say("ok"), say("ok")]);
    let lango = Lango::new();
    let url = provider.server.url();
    let own = ["--provider", "mine", "--base-url", url, "--model", "any"];
    with_key(&lango, KEY, &own).ok();
    let before = fs::read(keys_file(&lango)).unwrap();
    let file = lango.home().join("lango.toml");
    let target = lango.workspace().join("managed.toml");
    fs::rename(&file, &target).unwrap();
    symlink(&target, &file).unwrap();
    let written = fs::read(&target).unwrap();
    let other = [&own[..5], &["other"]].concat();
    let ran = with_key(&lango, "sk-another", &other).exits(2);
    assert!(ran.stderr.contains("is a link to"), "{ran:#?}");
    assert_eq!(fs::read(keys_file(&lango)).unwrap(), before);
    assert_eq!(fs::read(&target).unwrap(), written);
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
