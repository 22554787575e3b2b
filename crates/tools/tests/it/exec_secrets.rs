//! Secrets of commands: placeholders for those that are bound to headers, values for programs that the user allowed.

use crate::command_bench::{Ask, CommandBench};
use lango_core::Caller;
use lango_net::{Egress, EgressLimits, EgressRules, SecretAccess};
use lango_secrets::{Masks, SecretValue};
use lango_testkit::secrets::MemorySecrets;
use lango_testkit::tool::caller;
use lango_tools::CommandProxy;
use serde_json::{Value, json};
use std::sync::Arc;

const VALUE: &str = "AKIA-not-to-be-seen";

fn bench(secrets: MemorySecrets, has_proxy: bool) -> (CommandBench, Arc<MemorySecrets>) {
    masked_bench(secrets, has_proxy, Masks::default())
}

fn masked_bench(
    secrets: MemorySecrets,
    has_proxy: bool,
    masks: Masks,
) -> (CommandBench, Arc<MemorySecrets>) {
    let secrets = Arc::new(secrets);
    let access = SecretAccess::new(Arc::clone(&secrets) as _, masks);
    let bench = CommandBench::with(Ask {
        proxy: has_proxy.then(|| CommandProxy {
            egress: Egress::new(EgressRules::default(), EgressLimits::default()),
            hosts: vec!["api.example".parse().unwrap()],
        }),
        secrets: Some(access),
        ..Ask::default()
    });
    (bench, secrets)
}

fn for_program() -> MemorySecrets {
    MemorySecrets::new(VALUE).with_program("AWS", "printenv", "AWS_SECRET")
}

fn reason(bench: &CommandBench, tool: &str, arguments: &Value) -> Option<String> {
    let tool = bench.tool(tool);
    let inspecting = async { tool.inspect(&caller(), Arc::new(arguments.clone())).await };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let inspection = runtime.block_on(inspecting);
    inspection.user_only.map(|reason| reason.to_string())
}

#[test]
fn a_program_that_a_secret_is_bound_to_sees_it_when_the_user_allowed_the_call() {
    let (bench, _) = bench(for_program(), false);
    for arguments in [
        json!({"argv": ["printenv", "AWS_SECRET"]}),
        json!({"command": "printenv 'AWS_SECRET'"}),
    ] {
        for tool in ["exec", "exec_bg"] {
            assert_eq!(
                reason(&bench, tool, &arguments).unwrap(),
                "`printenv` would see the value of the secret `AWS` in the variable AWS_SECRET"
            );
        }
        let text = bench.text("exec", arguments);
        assert!(text.contains(VALUE), "{text}");
    }
    assert_eq!(reason(&bench, "exec", &json!({"command": "ls"})), None);
}

#[test]
fn what_a_program_prints_is_masked_before_it_is_stored() {
    let masks = Masks::default();
    masks.add("AWS", &SecretValue::new(VALUE));
    let (bench, _) = masked_bench(for_program(), false, masks);
    let text = bench.text("exec", json!({"argv": ["printenv", "AWS_SECRET"]}));
    assert!(text.contains("[secret AWS]"), "{text}");
    let script = format!(
        "printf 'é {}'; sleep 0.3; printf '{} ü'",
        &VALUE[..7],
        &VALUE[7..]
    );
    let text = bench.text("exec", json!({ "command": script }));
    assert!(text.contains("é [secret AWS] ü"), "{text}");
}

#[test]
fn other_commands_do_not_see_it_and_are_told_why() {
    let (bench, _) = bench(for_program(), false);
    for command in [
        "printenv AWS_SECRET; true",
        "printenv AWS_SECRET | cat",
        "env printenv AWS_SECRET",
        "/usr/bin/printenv AWS_SECRET",
        "echo $(printenv AWS_SECRET)",
        "sh -c 'printenv AWS_SECRET'",
    ] {
        let arguments = json!({"command": command});
        assert_eq!(reason(&bench, "exec", &arguments), None, "{command}");
        let text = bench.text("exec", arguments);
        assert!(!text.contains(VALUE), "{command}: {text}");
        let remark = "[secrets: `printenv` did not get `AWS`: run `printenv` alone";
        assert!(text.contains(remark), "{command}: {text}");
    }
    let text = bench.text("exec", json!({"command": "env"}));
    assert!(
        !text.contains("AWS_SECRET") && !text.contains("secrets:"),
        "{text}"
    );
}

#[test]
fn a_call_that_was_not_inspected_as_such_gets_no_value() {
    let (bench, secrets) = bench(for_program(), false);
    let tool = bench.tool("exec");
    let arguments = Arc::new(json!({"argv": ["printenv", "AWS_SECRET"]}));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let run = |caller: Caller| {
        let run = async { tool.run(&caller, Arc::clone(&arguments)).await };
        runtime.block_on(run).unwrap().text
    };
    let text = run(caller());
    assert!(!text.contains(VALUE), "{text}");
    assert!(
        text.contains("its binding changed after you were asked"),
        "{text}"
    );
    // Revoked after the user allowed it.
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
fn a_command_with_a_proxy_has_placeholders_and_certificates_and_one_without_has_not() {
    let secrets =
        || MemorySecrets::new(VALUE).with_header("TOKEN", "exec", "api.example", "API_TOKEN");
    let (proxied, _) = bench(secrets(), true);
    let script = "echo $API_TOKEN; grep -c BEGIN $SSL_CERT_FILE; test $SSL_CERT_FILE = $GIT_SSL_CAINFO && echo same; \
        grep -l PRIVATE $SSL_CERT_FILE; echo x >> $SSL_CERT_FILE; rm $SSL_CERT_FILE; test -s $SSL_CERT_FILE && echo there";
    let text = proxied.text("exec", json!({"command": script}));
    assert!(text.contains("\nlango_secret_"), "{text}");
    assert!(text.contains("same") && text.contains("there"), "{text}");
    assert!(!text.contains(VALUE), "{text}");
    let script = json!({"command": "env | grep -c 'TOKEN\\|SSL'"});
    let (closed, _) = bench(secrets(), false);
    assert!(closed.text("exec", script.clone()).contains("\n0\n"));
    let (unbound, _) = bench(MemorySecrets::new(VALUE), true);
    assert!(unbound.text("exec", script).contains("\n0\n"));
}

#[test]
fn a_command_without_a_proxy_that_names_the_variable_is_told_why_it_is_not_set() {
    let secrets =
        MemorySecrets::new(VALUE).with_header("TOKEN", "exec", "api.example", "API_TOKEN");
    let (bench, _) = bench(secrets, false);
    let text = bench.text("exec", json!({"command": "echo \"token $API_TOKEN\""}));
    let remark = "[secrets: API_TOKEN was not set: commands use `TOKEN` only where `tools.exec.network` lists";
    assert!(text.contains(remark), "{text}");
    let text = bench.text("exec", json!({"command": "echo done"}));
    assert!(!text.contains("secrets:"), "{text}");
}

#[test]
fn commands_run_without_secrets_while_the_vault_is_locked_and_the_result_says_so() {
    let (bench, _) = bench(MemorySecrets::locked(), true);
    let text = bench.text("exec", json!({"command": "echo done"}));
    assert!(text.contains("\ndone\n"), "{text}");
    let remark = "[secrets: this command ran without bound secrets: the vault is locked; run `lango secrets unlock`]";
    assert!(text.contains(remark), "{text}");
}
