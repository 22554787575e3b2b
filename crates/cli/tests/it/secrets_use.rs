//! How lango itself uses stored secrets: keys of models, the token of the server; and that agents cannot reach them.

use crate::lango::{Lango, finish};
use crate::models::Provider;
use crate::secrets::{PASSPHRASE, listed, run, set, wait_until_expired, with_passphrase};
use crate::serve::TestServer;
use lango_testkit::model::say;
use lango_testkit::wire_server::Fault;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

const KEY: &str = "sk-canary-of-a-model";

/// Creates a home whose model needs the key `secret:MODEL_KEY`.
fn with_model(provider: &Provider) -> Lango {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        format!(
            "agent.model = 'mine/any'\n[providers.mine]\nkind = 'openai'\nbaseUrl = '{}'\napiKeyEnv = 'secret:MODEL_KEY'\n",
            provider.server.url()
        ),
    );
    lango
}

#[test]
fn a_model_is_called_with_a_key_from_the_vault() {
    let provider = Provider::new(vec![say("Hi."), say("Hi.")]);
    let lango = with_model(&provider);
    let ran = run(&lango, &["run", "hello"]).exits(3);
    assert!(
        ran.stderr.contains("lango secrets set MODEL_KEY"),
        "{ran:#?}"
    );
    set(&lango, "MODEL_KEY", KEY).ok();
    let ran = run(&lango, &["run", "hello"]).ok();
    assert!(ran.stdout.contains("Hi."), "{ran:#?}");
    let requests = provider.server.requests();
    assert_eq!(
        requests[0].header("authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
    let log = lango.run(&["secrets", "log"]).ok().stdout;
    assert!(log.lines().next().unwrap().contains("used"), "{log}");
    // The vault is locked, and there is no terminal to ask at.
    lango
        .run(&["run", "hello"])
        .refused(3, &["the vault of `local` is locked"]);
    let ran = lango.run(&["agents"]).ok();
    assert!(
        ran.stderr.contains("the vault of `local` is locked"),
        "{ran:#?}"
    );
    // No request was sent.
    let ran = lango.run(&["models"]).exits(3);
    assert!(!ran.stdout.contains("not accepted"), "{ran:#?}");
    assert!(ran.stdout.contains("its key cannot be used"), "{ran:#?}");
    // An environment variable of that name is not used instead.
    let mut command = lango.command(&["run", "hello"]);
    finish(command.env("secret:MODEL_KEY", "forged"), b"").refused(3, &["locked"]);
    assert_eq!(provider.server.requests().len(), 1);
}

#[test]
fn a_rejected_key_from_the_vault_is_reported_with_the_command_that_replaces_it() {
    let provider = Provider::new(vec![Fault::BadKey]);
    let lango = with_model(&provider);
    set(&lango, "MODEL_KEY", KEY).ok();
    let ran = run(&lango, &["run", "hello"]).exits(3);
    assert!(
        ran.stderr.contains("lango secrets rotate MODEL_KEY"),
        "{ran:#?}"
    );
}

#[test]
fn an_expired_key_is_refused_with_its_expiry_date() {
    let provider = Provider::new(vec![say("Hi.")]);
    let lango = with_model(&provider);
    let arguments = ["secrets", "set", "MODEL_KEY", "--expires", "3s"];
    with_passphrase(&lango, PASSPHRASE, &arguments, KEY.as_bytes()).ok();
    wait_until_expired(&lango);
    let ran = run(&lango, &["run", "hello"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    for text in [
        "`MODEL_KEY` expired on 20",
        "lango secrets rotate MODEL_KEY",
    ] {
        assert!(ran.stderr.contains(text), "{ran:#?}");
    }
    assert_eq!(ran.stderr.matches("expired").count(), 1, "{ran:#?}");
    assert!(provider.server.requests().is_empty());
    // A turn with another model works.
    run(&lango, &["run", "-c", "agent.model=offline/rules", "hello"]).ok();
}

#[test]
fn the_key_of_a_wallet_is_never_sent_to_a_service() {
    let provider = Provider::new(vec![say("Hi.")]);
    let lango = with_model(&provider);
    run(&lango, &["payments", "wallet", "create", "MODEL_KEY"]).ok();
    let ran = run(&lango, &["run", "hello"]);
    assert_ne!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stderr.contains("stays inside lango"), "{ran:#?}");
    assert!(provider.server.requests().is_empty());
}

#[test]
fn a_new_key_file_in_the_working_folder_is_refused() {
    let lango = Lango::new();
    set(&lango, "KEY", "value").ok();
    for path in ["vault.key", "./vault.key"] {
        run(&lango, &["secrets", "methods", "add", "--key-file", path]).refused(
            2,
            &["could read the key file", "outside of the working folder"],
        );
    }
    assert!(!lango.workspace().join("vault.key").exists());
}

#[test]
fn an_untrusted_project_can_name_neither_a_secret_nor_a_key_file() {
    let provider = Provider::new(vec![say("Hi.")]);
    let lango = Lango::new();
    set(&lango, "MODEL_KEY", KEY).ok();
    lango.file("forged.key", "lango-vault-key-1 00\n");
    lango.file(
        "lango.toml",
        format!(
            "vault.keyFile = 'forged.key'\nagent.model = 'mine/any'\n\
             [providers.mine]\nkind = 'openai'\nbaseUrl = '{}'\napiKeyEnv = 'secret:MODEL_KEY'\n",
            provider.server.url()
        ),
    );
    let ran = run(&lango, &["run", "hello"]).ok();
    assert!(ran.stderr.contains("vault.keyFile"), "{ran:#?}");
    assert!(provider.server.requests().is_empty());
    let log = lango.run(&["secrets", "log"]).ok().stdout;
    assert!(!log.contains("used"), "{log}");
}

#[test]
fn agents_cannot_see_the_key_file() {
    let lango = Lango::new();
    let file = lango.workspace().join("vault.key");
    let setting = format!("vault.keyFile={}", file.display());
    lango
        .piped(&["-c", &setting, "secrets", "set", "KEY"], "x")
        .ok();
    let line = fs::read_to_string(&file).unwrap();
    let allow = r#"approval.rules=[{action="allow"}]"#;
    for question in ["read `vault.key`", "run `cat vault.key; ls -l`"] {
        let arguments = ["-c", &setting, "-c", allow, "run", "-q", question];
        let ran = lango.run(&arguments);
        assert!(!ran.stdout.contains(line.trim()), "{ran:#?}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_command_of_an_agent_cannot_reach_the_unlocked_key() {
    let lango = Lango::new();
    set(&lango, "KEY", "value").ok();
    run(&lango, &["secrets", "unlock"]).ok();
    let listed = fs::read_to_string("/proc/keys").unwrap();
    assert!(listed.contains("lango-vault:"), "{listed}");
    lango.file(
        "reach.py",
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n\
         for number in (248, 249, 250):\n    libc.syscall(number, 0, -3, 0)\n    print('errno', ctypes.get_errno())\n\
         print(open('/proc/keys').read() if __import__('os').path.exists('/proc/keys') else 'none')\n",
    );
    let allow = r#"approval.rules=[{action="allow"}]"#;
    let ran = run(
        &lango,
        &["-c", allow, "run", "-q", "run `python3 reach.py`"],
    )
    .ok();
    assert_eq!(ran.stdout.matches("errno 1\n").count(), 3, "{ran:#?}");
    lango.run(&["secrets", "lock"]).ok();
}

#[test]
fn import_env_stores_variables_and_the_server_token() {
    let lango = Lango::new();
    let file = lango.home().with_file_name("vault.key");
    lango.home_file("server-token", "0123456789abcdef0123\n");
    lango.home_file(
        "lango.toml",
        format!(
            "vault.keyFile = '{}'\n[mcp.servers.tracker]\nurl = 'https://tracker.example'\ntokenEnv = 'TRACKER_TOKEN'\n",
            file.display()
        ),
    );
    let import = |names: &[&str]| {
        let mut command = lango.command(&[&["secrets", "import-env"], names].concat());
        command
            .env("OPENAI_API_KEY", KEY)
            .env("TRACKER_TOKEN", "tracker-canary")
            .env("UNRELATED", "unrelated-canary");
        finish(&mut command, b"")
    };
    import(&["ABSENT"]).refused(2, &["`ABSENT` is not set"]);
    let ran = import(&[]).ok();
    assert!(ran.stderr.contains("secret:OPENAI_API_KEY"), "{ran:#?}");
    let names: Vec<String> = listed(&lango).into_iter().map(|(name, _)| name).collect();
    let all = ["OPENAI_API_KEY", "TRACKER_TOKEN", "lango-server-token"];
    assert_eq!(names, all);
    assert!(!lango.home().join("server-token").exists());
    let again = import(&["OPENAI_API_KEY"]).ok();
    assert_eq!(again.stdout, "OPENAI_API_KEY is already in the vault\n");
    import(&["UNRELATED"]).ok();
    // The server still uses the same token.
    let mut server = TestServer::start_with(lango.sibling(), &[]);
    let banner = server.banner();
    assert!(
        banner.contains("in the vault, as lango-server-token"),
        "{banner}"
    );
    assert_eq!(status_with(&server, "wrong"), "401");
    assert_ne!(status_with(&server, "0123456789abcdef0123"), "401");
    server.end();
    assert!(!lango.home().join("server-token").exists());
}

#[test]
fn logins_of_mcp_servers_are_encrypted_and_still_work() {
    let lango = Lango::new();
    let file = lango.home().with_file_name("vault.key");
    let settings = format!(
        "vault.keyFile = '{}'\n[mcp.servers.tracker]\nurl = 'https://tracker.example'\n",
        file.display()
    );
    lango.home_file("lango.toml", &settings);
    let grant = r#"{ "access_token": "canary-login", "token_endpoint": "https://x", "resource": "https://y",
        "client": { "id": "c", "shown_in": "nothing" } }"#;
    let grants = format!(
        r#"{{ "servers": {{ "tracker": {{ "url": "https://tracker.example", "grant": {grant} }} }} }}"#
    );
    lango.home_file("mcp/grants.json", grants);
    let ran = lango.run(&["secrets", "import-env"]).ok();
    assert!(ran.stdout.contains("encrypted "), "{ran:#?}");
    let stored = fs::read(lango.home().join("mcp/grants.json")).unwrap();
    let shows = |bytes: &[u8]| bytes.windows(6).any(|part| part == b"canary");
    assert!(!shows(&stored));
    assert!(
        lango
            .stored_files()
            .iter()
            .all(|(_, content)| !shows(content))
    );
    // Without the key, the logins are neither read nor overwritten.
    let moved = file.with_extension("away");
    fs::rename(&file, &moved).unwrap();
    let ran = lango.run(&["mcp", "logout", "tracker"]).exits(3);
    assert!(ran.stderr.contains("lango secrets unlock"), "{ran:#?}");
    assert_eq!(
        fs::read(lango.home().join("mcp/grants.json")).unwrap(),
        stored
    );
    fs::rename(&moved, &file).unwrap();
    let ran = lango.run(&["mcp", "logout", "tracker"]).ok();
    assert!(ran.stdout.contains("deleted the stored access"), "{ran:#?}");
    let ran = lango.run(&["secrets", "import-env"]);
    ran.refused(2, &["no plain key file"]);
    // A lost key loses only the logins.
    lango.run(&["secrets", "rm", "lango-mcp-logins-key"]).ok();
    let ran = lango.run(&["agents"]).ok();
    assert!(
        ran.stderr.contains("log in to the servers again"),
        "{ran:#?}"
    );
}

/// Returns the status line of a request with this token.
fn status_with(server: &TestServer, token: &str) -> String {
    let address = server.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn the_offline_model_delegates_secrets_to_the_vault_agent_and_commands_to_the_operator() {
    let lango = Lango::new();
    set(&lango, "MY_KEY", "a long value").ok();
    for (request, agent, printed) in [
        ("list my secrets", "vault", "MY_KEY"),
        ("what secrets do I have?", "vault", "MY_KEY"),
        (
            "hash the text hello",
            "vault",
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        ),
        (
            "run `echo https://api.example/a.html`",
            "operator",
            "https://api.example/a.html",
        ),
    ] {
        let rule = r#"approval.rules=[{action="allow"}]"#;
        let ran = run(&lango, &["-c", rule, "run", request]).ok();
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(printed), "{request}: {ran:#?}");
        assert!(all.contains(agent), "{request}: {ran:#?}");
    }
    lango.file("a.txt", "hello");
    let rule = r#"approval.rules=[{action="allow"}]"#;
    let ran = run(&lango, &["-c", rule, "run", "hash a.txt"]).ok();
    assert!(
        ran.stdout.contains("2cf24dba5fb0a30e26e83b2ac5b9e29e"),
        "{ran:#?}"
    );
}
