//! Switches of the permission mode in whole turns: in the middle of a turn, while a call waits for approval, and after a
//! grant.

use crate::approvals::{answer, ask, one_write, waiting};
use crate::bench::{Bench, finished, local};
use crate::modes::{Kind, bench_of, denials, edit};
use lango_core::{ApprovalAnswer, Effect, Inspection, PermissionMode, Risk, Tool};
use lango_engine::ModeSwitch;
use lango_testkit::model::{ScriptedModel, call, calls, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

use PermissionMode::{AcceptEdits, Ask, Plan, ReadOnly};

#[tokio::test]
async fn an_edit_that_the_user_denied_does_not_run_after_a_switch_to_accept_edits() {
    let kind: Kind = ("fs_write", Effect::Idempotent, Risk::Moderate, edit(None));
    let (bench, tool) = bench_of(&kind, Vec::new(), Ask);
    let write = || call("fs_write", json!({ "path": "a" }));
    let script = [
        delegate_and_finish("operator", "write"),
        write(),
        write(),
        say("Not written."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    waiting(ask(&mut conversation, "write").await);
    bench.mode.set(AcceptEdits);
    finished(answer(&mut conversation, ApprovalAnswer::No { reason: None }).await);
    assert_eq!(tool.runs(), 0);
    assert_eq!(denials(&bench, &conversation).await.len(), 2);
}

#[tokio::test]
async fn an_approval_that_is_given_after_a_switch_to_read_only_does_not_run_the_call() {
    for mode in [ReadOnly, Plan] {
        let kind: Kind = (
            "exec",
            Effect::NonIdempotent,
            Risk::Dangerous,
            Inspection::default(),
        );
        let (bench, tool) = bench_of(&kind, Vec::new(), Ask);
        let script = [
            delegate_and_finish("operator", "run"),
            call("exec", json!({ "command": "make" })),
            say("Not run."),
        ];
        let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
        waiting(ask(&mut conversation, "run").await);
        bench.mode.set(mode);
        finished(answer(&mut conversation, ApprovalAnswer::Once).await);
        assert_eq!(tool.runs(), 0);
        let denied = denials(&bench, &conversation).await;
        assert!(denied[0].contains(&format!("`{mode}`")), "{denied:?}");
    }
}

#[tokio::test]
async fn a_grant_does_not_run_a_call_in_read_only() {
    let kind: Kind = ("fs_write", Effect::Idempotent, Risk::Moderate, edit(None));
    let (bench, tool) = bench_of(&kind, Vec::new(), Ask);
    let script = one_write("a").into_iter().chain(one_write("a"));
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    let asked = waiting(ask(&mut conversation, "write").await);
    let pattern = asked[0].request.pattern.clone().unwrap();
    finished(answer(&mut conversation, ApprovalAnswer::Session { pattern }).await);
    bench.mode.set(ReadOnly);
    finished(ask(&mut conversation, "again").await);
    assert_eq!(tool.runs(), 1);
}

/// Switches the mode when it runs.
fn switching_tool(mode: &ModeSwitch, to: PermissionMode) -> Arc<CountingTool> {
    let mode = mode.clone();
    let tool = CountingTool::new("fs_read").with_run(move |_| {
        mode.set(to);
        Ok("switched".to_owned())
    });
    Arc::new(tool)
}

#[tokio::test]
async fn a_switch_in_the_middle_of_a_turn_decides_about_the_next_call() {
    let kind: Kind = ("fs_write", Effect::Idempotent, Risk::Moderate, edit(None));
    for (before, after) in [
        (AcceptEdits, ReadOnly),
        (ReadOnly, AcceptEdits),
        (AcceptEdits, Ask),
    ] {
        let (mut bench, tool) = bench_of(&kind, Vec::new(), before);
        bench.tools.push(switching_tool(&bench.mode, after));
        let write = |path: &str| call("fs_write", json!({ "path": path }));
        let script = [
            delegate_and_finish("operator", "work"),
            write("a"),
            call("fs_read", json!({})),
            write("b"),
            say("Done."),
        ];
        let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
        let end = ask(&mut conversation, "work").await;
        let runs = [before, after]
            .iter()
            .filter(|mode| **mode == AcceptEdits)
            .count();
        assert_eq!(tool.runs(), runs, "{before} to {after}");
        match after {
            Ask => assert_eq!(waiting(end).len(), 1),
            _ => {
                finished(end);
                assert_eq!(denials(&bench, &conversation).await.len(), 2 - runs);
            }
        }
    }
}

#[tokio::test]
async fn a_stored_call_that_waits_for_another_one_does_not_start_after_a_switch_to_read_only() {
    let mode = ModeSwitch::new(AcceptEdits);
    let switch = mode.clone();
    let tool = CountingTool::new("fs_edit")
        .with_inspection(edit(None))
        .with_run(move |_| {
            switch.set(ReadOnly);
            Ok("edited".to_owned())
        });
    let tool = Arc::new(tool);
    let mut bench = Bench::new(vec![Arc::clone(&tool) as Arc<dyn Tool>]);
    bench.mode = mode;
    // Calls with effects run one after the other.
    let both = calls([
        ("fs_edit", json!({ "path": "a" })),
        ("fs_edit", json!({ "path": "b" })),
    ]);
    let script = [
        delegate_and_finish("operator", "edit"),
        both,
        say("Edited one."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    finished(ask(&mut conversation, "edit").await);
    assert_eq!(tool.runs(), 1);
    let denied = denials(&bench, &conversation).await;
    assert!(denied[0].contains("`read-only`"), "{denied:?}");
}

#[tokio::test]
async fn an_accepted_edit_behind_an_approval_is_asked_for_after_a_switch_to_ask() {
    let exec = Arc::new(
        CountingTool::new("exec")
            .with_effect(Effect::NonIdempotent)
            .with_risk(Risk::Dangerous),
    );
    let edits = Arc::new(CountingTool::new("fs_edit").with_inspection(edit(None)));
    let tools = [&exec, &edits].map(|tool| Arc::clone(tool) as Arc<dyn Tool>);
    let mut bench = Bench::new(tools.to_vec());
    bench.mode = ModeSwitch::new(AcceptEdits);
    let both = calls([
        ("exec", json!({ "command": "make" })),
        ("fs_edit", json!({ "path": "a" })),
    ]);
    let script = [
        delegate_and_finish("operator", "work"),
        both,
        call("fs_edit", json!({ "path": "a" })),
        say("Edited."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    waiting(ask(&mut conversation, "work").await);
    bench.mode.set(Ask);
    let asked = waiting(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!((exec.runs(), edits.runs()), (1, 0));
    assert_eq!(asked[0].request.tool, "fs_edit");
    let denied = denials(&bench, &conversation).await;
    assert!(
        denied[0].contains("call again to ask the user"),
        "{denied:?}"
    );
    finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!(edits.runs(), 1);
}
