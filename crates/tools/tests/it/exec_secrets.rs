//! Secrets of commands: placeholders for secrets bound to headers, values for programs that the user approved.

use crate::command_fixture::{CommandFixture, FixtureOptions};
use lango_core::{Caller, Inspection};
use lango_net::{Egress, EgressLimits, EgressRules, SecretAccess};
use lango_secrets::{Masks, SecretValue, UNLOCK_REASON};
use lango_testkit::secrets::MemorySecrets;
use lango_testkit::tool::caller;
use lango_tools::CommandProxy;
use serde_json::{Value, json};
use std::sync::Arc;

const VALUE: &str = "AKIA-not-to-be-seen";

fn fixture(secrets: MemorySecrets, has_proxy: bool) -> (CommandFixture, Arc<MemorySecrets>) {
    masked_fixture(secrets, has_proxy, Masks::default())
}

fn masked_fixture(
    secrets: MemorySecrets,
    has_proxy: bool,
    masks: Masks,
) -> (CommandFixture, Arc<MemorySecrets>) {
    let secrets = Arc::new(secrets);
    let access = SecretAccess::new(Arc::clone(&secrets) as _, masks);
    let fixture = CommandFixture::with(FixtureOptions {
        proxy: has_proxy.then(|| CommandProxy {
            egress: Egress::new(EgressRules::default(), EgressLimits::default()),
            hosts: vec!["api.example".parse().unwrap()],
        }),
        secrets: Some(access),
        ..FixtureOptions::default()
    });
    (fixture, secrets)
}

fn for_program() -> MemorySecrets {
    MemorySecrets::new(VALUE).with_program("AWS", "printenv", "AWS_SECRET")
}

fn inspected(fixture: &CommandFixture, tool: &str, arguments: &Value) -> Inspection {
    let tool = fixture.tool(tool);
    let inspecting = async { tool.inspect(&caller(), Arc::new(arguments.clone())).await };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(inspecting)
}

fn reason(fixture: &CommandFixture, tool: &str, arguments: &Value) -> Option<String> {
    let inspection = inspected(fixture, tool, arguments);
    inspection.user_only.map(|reason| reason.to_string())
}

fn refusal(fixture: &CommandFixture, tool: &str, arguments: &Value) -> String {
    let refused = inspected(fixture, tool, arguments).refused;
    refused.map(|text| text.to_string()).unwrap_or_default()
}

/// Starts a job that runs until it is stopped.
fn start_job(fixture: &CommandFixture) {
    let text = fixture.text("exec_bg", json!({"command": "sleep 100"}));
    assert!(text.contains("job_1 runs in the background"), "{text}");
}

#[test]
fn a_program_sees_a_secret_bound_to_it_if_the_user_approved_the_call() {
    let (fixture, _) = fixture(for_program(), false);
    for arguments in [
        json!({"argv": ["printenv", "AWS_SECRET"]}),
        json!({"command": "printenv 'AWS_SECRET'"}),
    ] {
        assert_eq!(
            reason(&fixture, "exec", &arguments).unwrap(),
            "`printenv` would see the value of the secret `AWS` in the variable AWS_SECRET, and so would all programs it starts"
        );
        let text = fixture.text("exec", arguments);
        assert!(text.contains(VALUE), "{text}");
    }
    assert_eq!(reason(&fixture, "exec", &json!({"command": "ls"})), None);
}

#[test]
fn output_is_masked_before_it_is_stored() {
    let masks = Masks::default();
    masks.add("AWS", &SecretValue::new(VALUE));
    let (fixture, _) = masked_fixture(for_program(), false, masks);
    let text = fixture.text("exec", json!({"argv": ["printenv", "AWS_SECRET"]}));
    assert!(text.contains("[secret AWS]"), "{text}");
    let script = format!(
        "printf 'é {}'; sleep 0.3; printf '{} ü'",
        &VALUE[..7],
        &VALUE[7..]
    );
    let text = fixture.text("exec", json!({ "command": script }));
    assert!(text.contains("é [secret AWS] ü"), "{text}");
    // Masking works on the bytes, before they are converted to text.
    let script = format!("printf 'is {VALUE}\\n\\377' | iconv -f LATIN1 -t UTF-16LE");
    let text = fixture.text("exec", json!({ "command": script }));
    assert!(text.contains("[secret AWS]"), "{text}");
    assert!(!text.contains(&VALUE.replace("", "␀")[3..12]), "{text}");
}

#[test]
fn other_commands_do_not_see_the_secret_and_the_result_says_why() {
    let (fixture, _) = fixture(for_program(), false);
    for command in [
        "printenv AWS_SECRET; true",
        "printenv AWS_SECRET | cat",
        "env printenv AWS_SECRET",
        "/usr/bin/printenv AWS_SECRET",
        "echo $(printenv AWS_SECRET)",
        "sh -c 'printenv AWS_SECRET'",
    ] {
        let arguments = json!({"command": command});
        assert_eq!(reason(&fixture, "exec", &arguments), None, "{command}");
        let text = fixture.text("exec", arguments);
        assert!(!text.contains(VALUE), "{command}: {text}");
        let remark = "[secrets: `printenv` did not get `AWS`: run `printenv` alone";
        assert!(text.contains(remark), "{command}: {text}");
    }
    let text = fixture.text("exec", json!({"command": "env"}));
    assert!(
        !text.contains("AWS_SECRET") && !text.contains("secrets:"),
        "{text}"
    );
}

#[test]
fn a_call_gets_no_value_without_a_matching_inspection() {
    let (fixture, secrets) = fixture(for_program(), false);
    let tool = fixture.tool("exec");
    let arguments = Arc::new(json!({"argv": ["printenv", "AWS_SECRET"]}));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let run = |caller: Caller| {
        let run = async { tool.run(&caller, Arc::clone(&arguments)).await };
        runtime.block_on(run).unwrap().text
    };
    let text = run(caller());
    assert!(!text.contains(VALUE), "{text}");
    assert!(
        text.contains("its binding changed after the call was approved"),
        "{text}"
    );
    // Revoked after the approval.
    let inspecting = async { tool.inspect(&caller(), Arc::clone(&arguments)).await };
    let inspection = runtime.block_on(inspecting);
    secrets.unbind();
    let text = run(Caller {
        inspection,
        ..caller()
    });
    assert!(!text.contains(VALUE), "{text}");
}

#[test]
fn only_a_command_with_a_proxy_has_placeholders_and_certificates() {
    let secrets =
        || MemorySecrets::new(VALUE).with_header("TOKEN", "exec", "api.example", "API_TOKEN");
    let (proxied, _) = fixture(secrets(), true);
    let script = "echo $API_TOKEN; grep -c BEGIN $SSL_CERT_FILE; test $SSL_CERT_FILE = $GIT_SSL_CAINFO && echo same; \
        grep -l PRIVATE $SSL_CERT_FILE; echo x >> $SSL_CERT_FILE; rm $SSL_CERT_FILE; test -s $SSL_CERT_FILE && echo there";
    let text = proxied.text("exec", json!({"command": script}));
    assert!(text.contains("\nlango_secret_"), "{text}");
    assert!(text.contains("same") && text.contains("there"), "{text}");
    assert!(!text.contains(VALUE), "{text}");
    let script = json!({"command": "env | grep -c 'TOKEN\\|SSL'"});
    let (closed, _) = fixture(secrets(), false);
    assert!(closed.text("exec", script.clone()).contains("\n0\n"));
    let (unbound, _) = fixture(MemorySecrets::new(VALUE), true);
    assert!(unbound.text("exec", script).contains("\n0\n"));
}

#[test]
fn without_a_proxy_the_result_says_why_the_variable_is_not_set() {
    let secrets =
        MemorySecrets::new(VALUE).with_header("TOKEN", "exec", "api.example", "API_TOKEN");
    let (fixture, _) = fixture(secrets, false);
    let text = fixture.text("exec", json!({"command": "echo \"token $API_TOKEN\""}));
    let remark = "[secrets: API_TOKEN was not set: commands can use `TOKEN` only if `tools.exec.network` is a list";
    assert!(text.contains(remark), "{text}");
    let text = fixture.text("exec", json!({"command": "echo done"}));
    assert!(!text.contains("secrets:"), "{text}");
}

#[test]
fn while_the_vault_is_locked_commands_run_without_secrets_and_the_result_says_so() {
    let (fixture, _) = fixture(MemorySecrets::locked(), true);
    let text = fixture.text("exec", json!({"command": "echo done"}));
    assert!(text.contains("\ndone\n"), "{text}");
    let remark = "[secrets: the command ran without its bound secrets: the vault is locked; run `lango secrets unlock`]";
    assert!(text.contains(remark), "{text}");
}

#[test]
fn a_program_that_sees_a_value_runs_alone() {
    let (fixture, _) = fixture(for_program(), false);
    let arguments = json!({"argv": ["printenv", "AWS_SECRET"]});
    start_job(&fixture);
    let refused = refusal(&fixture, "exec", &arguments);
    assert!(refused.contains("`job_1` is running"), "{refused}");
    // Also if the job started after the inspection.
    let error = fixture.error("exec", arguments.clone());
    assert!(error.contains("`job_1` is running"), "{error}");
    let text = fixture.text("exec", json!({"command": "echo beside"}));
    assert!(text.contains("\nbeside\n"), "{text}");
    fixture.text("exec_stop", json!({"job": "job_1"}));
    let text = fixture.text("exec", arguments);
    assert!(text.contains(VALUE), "{text}");
}

#[test]
fn nothing_starts_while_a_program_that_sees_a_value_runs() {
    let secrets = MemorySecrets::new(VALUE).with_program("AWS", "sleep", "AWS_SECRET");
    let (fixture, _) = fixture(secrets, false);
    let sleep = Arc::new(json!({"argv": ["sleep", "20"]}));
    let tool = fixture.tool("exec");
    let inspection = inspected(&fixture, "exec", &sleep);
    let asked = Caller {
        inspection,
        ..caller()
    };
    let (runs, arguments) = (Arc::clone(&tool), Arc::clone(&sleep));
    let running = fixture
        .runtime
        .spawn(async move { runs.run(&asked, arguments).await });
    let status = json!({});
    fixture.wait_for("exec_status", &status, |text| text.contains("run_1"));
    for tool in ["exec", "exec_bg"] {
        let error = fixture.error(tool, json!({"command": "echo beside"}));
        assert!(
            error.contains("`run_1` sees the value of a secret"),
            "{error}"
        );
    }
    running.abort();
}

#[test]
fn a_program_that_sees_a_value_cannot_run_in_the_background() {
    let (fixture, _) = fixture(for_program(), false);
    let arguments = json!({"argv": ["printenv", "AWS_SECRET"]});
    let refused = refusal(&fixture, "exec_bg", &arguments);
    assert!(refused.contains("run it with `exec`"), "{refused}");
    let error = fixture.error("exec_bg", arguments);
    assert!(error.contains("run it with `exec`"), "{error}");
}

/// Settings of a repository that run a program whenever git reads its files.
const HOSTILE: &str = "[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = \"printenv GIT_SECRET >&2; false\"\n";

#[test]
fn git_with_a_secret_runs_nothing_that_another_command_planted() {
    let secrets = || MemorySecrets::new(VALUE).with_program("GIT", "git", "GIT_SECRET");
    let (planted, _) = fixture(secrets(), false);
    let script = "git init -q . && git config core.fsmonitor 'printenv GIT_SECRET >&2; false' && touch planted && sleep 100";
    let text = planted.text("exec_bg", json!({ "command": script }));
    assert!(text.contains("job_1 runs in the background"), "{text}");
    let started = std::time::Instant::now();
    while !planted.inside("planted").exists() {
        assert!(started.elapsed().as_secs() < 30);
    }
    let status = json!({"argv": ["git", "status"]});
    let error = planted.error("exec", status.clone());
    assert!(error.contains("`job_1` is running"), "{error}");
    // The clean-up removes the repository with the job.
    planted.text("exec_stop", json!({"job": "job_1"}));
    let text = planted.text("exec", status.clone());
    assert!(!text.contains(VALUE), "{text}");
    assert!(text.contains("not a git repository"), "{text}");
    // A directory that only looks like a bare repository, which file tools can create.
    let (bare, _) = fixture(secrets(), false);
    for folder in ["bare/objects", "bare/refs"] {
        std::fs::create_dir_all(bare.inside(folder)).unwrap();
    }
    std::fs::write(bare.inside("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(bare.inside("bare/config"), HOSTILE).unwrap();
    let status = json!({"argv": ["git", "status"], "cwd": "bare"});
    let text = bare.text("exec", status);
    assert!(!text.contains(VALUE), "{text}");
    assert!(text.contains("bare"), "{text}");
}

#[test]
fn git_gets_no_secret_if_commands_can_create_repositories() {
    let secrets = MemorySecrets::new(VALUE).with_program("GIT", "git", "GIT_SECRET");
    let fixture = CommandFixture::with(FixtureOptions {
        policy: Some(|policy, _| policy.allow_git_init = true),
        secrets: Some(SecretAccess::new(Arc::new(secrets), Masks::default())),
        ..FixtureOptions::default()
    });
    let refused = refusal(&fixture, "exec", &json!({"argv": ["git", "status"]}));
    assert!(refused.contains("tools.exec.allowGitInit"), "{refused}");
}

#[test]
fn a_command_with_an_expired_secret_is_refused_before_the_user_is_asked() {
    let (fixture, _) = fixture(for_program().expired(), false);
    let refused = refusal(
        &fixture,
        "exec",
        &json!({"argv": ["printenv", "AWS_SECRET"]}),
    );
    assert!(refused.contains("`lango secrets rotate AWS`"), "{refused}");
}

#[test]
fn the_inspection_lists_the_secrets_of_a_command_and_where_they_go() {
    let secrets = for_program().with_header("TOKEN", "exec", "api.example", "API_TOKEN");
    let (fixture, _) = fixture(secrets, true);
    let notes = |arguments: Value| {
        let notes = inspected(&fixture, "exec", &arguments).notes;
        notes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let token = "may use: TOKEN, only in the header authorization of requests to https://api.example (placeholder in API_TOKEN)";
    assert_eq!(
        notes(json!({"command": "curl https://api.example"})),
        [token]
    );
    assert_eq!(
        notes(json!({"command": "printenv AWS_SECRET"})),
        [
            "SEES: AWS, in the variable AWS_SECRET of printenv",
            "printenv may execute code that its arguments or workspace files name, and all programs it starts see the value",
            token,
        ]
    );
}

#[test]
fn a_locked_vault_is_unlocked_by_the_user_who_approves_the_command() {
    let (fixture, secrets) = fixture(for_program().with_prompt(), false);
    let arguments = json!({"argv": ["printenv", "AWS_SECRET"]});
    let inspection = inspected(&fixture, "exec", &arguments);
    let reason = inspection.user_only.clone().unwrap();
    assert!(reason.starts_with("`printenv` would see"), "{reason}");
    assert!(reason.ends_with(UNLOCK_REASON), "{reason}");
    assert_eq!(reason_of(&fixture, "echo done"), None);
    secrets.unlock();
    let asked = Caller {
        inspection,
        ..caller()
    };
    let tool = fixture.tool("exec");
    let run = tool.run(&asked, Arc::new(arguments));
    let text = fixture.runtime.block_on(run).unwrap().text;
    assert!(text.contains(VALUE), "{text}");
}

fn reason_of(fixture: &CommandFixture, command: &str) -> Option<String> {
    reason(fixture, "exec", &json!({ "command": command }))
}

#[test]
fn the_first_command_asks_to_unlock_a_vault_with_a_secret_for_requests() {
    let secrets =
        MemorySecrets::new(VALUE).with_header("TOKEN", "exec", "api.example", "API_TOKEN");
    let (fixture, secrets) = fixture(secrets.with_prompt(), true);
    assert_eq!(reason_of(&fixture, "echo done").unwrap(), UNLOCK_REASON);
    secrets.unlock();
    assert_eq!(reason_of(&fixture, "echo done"), None);
}

#[test]
fn a_handle_in_a_command_is_reported_as_not_replaced() {
    let (fixture, _) = fixture(for_program(), false);
    let text = fixture.text("exec", json!({"command": "echo 'password=secret:AWS'"}));
    assert!(
        text.contains("secret:AWS is not replaced in commands"),
        "{text}"
    );
    let text = fixture.text("exec", json!({"command": "echo secret:OTHER mysecret:AWS"}));
    assert!(!text.contains("not replaced"), "{text}");
}
