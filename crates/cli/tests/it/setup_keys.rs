//! Where `lango setup` stores a key, who can read it, and what lango does with it afterwards.

use crate::lango::{Lango, finish};
use crate::models::Provider;
use crate::secrets::PASSPHRASE;
use crate::setup::{KEY, config, keys_file, keys_sent, store_key, with_key};
use lango_testkit::model::say;
use lango_testkit::wire_server::{Fault, ScriptedAnswer};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

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
fn a_variable_that_the_configuration_names_still_wins_and_setup_says_so() {
    let provider = Provider::new(vec![say("ok"), say("hi")]);
    let lango = Lango::new();
    lango
        .run(&["config", "set", "providers.mine.apiKeyEnv", "MY_KEY"])
        .ok();
    let url = provider.server.url();
    let mut command = lango.command(&[
        "setup",
        "--key-stdin",
        "--provider",
        "mine",
        "--base-url",
        url,
        "--model",
        "any",
    ]);
    command.env("MY_KEY", "sk-older").stdin(Stdio::piped());
    let ran = finish(&mut command, KEY.as_bytes()).ok();
    assert!(
        ran.stderr
            .contains("MY_KEY is set and takes precedence over the stored key"),
        "{ran:#?}"
    );
    let mut command = lango.command(&["run", "hello"]);
    finish(command.env("MY_KEY", "sk-older"), b"").ok();
    assert_eq!(
        keys_sent(&provider),
        [format!("Bearer {KEY}"), "Bearer sk-older".to_owned()]
    );
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
