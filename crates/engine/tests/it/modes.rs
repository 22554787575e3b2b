//! Permission modes in whole turns: which calls run, which are asked for and which are denied, and what the models are
//! told.

use crate::approvals::{answer, ask, one_write, waiting};
use crate::bench::{Bench, Shared, finished, local, log};
use crate::support::rule;
use lango_core::{
    ApprovalAnswer, CallStatus, Effect, EventBody, FileEdit, GuardedTarget, Inspection, Message,
    ModelReply, PermissionMode, RemoteAnswer, RemoteEvent, Risk, RuleSubject, SiteAccess, Tool,
};
use lango_engine::{ApprovalRule, ApprovalRules, Conversation, ModeSwitch, RuleAction, TurnEnd};
use lango_testkit::model::{ScriptedModel, call, delegate, delegate_and_finish, say};
use lango_testkit::remote::ScriptedRemote;
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

use PermissionMode::{AcceptEdits, Ask, Plan, ReadOnly};

/// What becomes of a call.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Runs,
    IsAsked,
    IsDenied,
}

pub(crate) fn edit(caution: Option<&str>) -> Inspection {
    Inspection {
        edit: Some(Box::new(FileEdit {
            caution: caution.map(Into::into),
            ..FileEdit::default()
        })),
        ..Inspection::default()
    }
}

const IRREVERSIBLE: &str = "`lango undo` could not restore `a`";

fn irreversible_edit() -> Inspection {
    let edit = FileEdit {
        irreversible: Some(IRREVERSIBLE.into()),
        ..FileEdit::default()
    };
    Inspection {
        edit: Some(Box::new(edit)),
        ..Inspection::default()
    }
}

fn guarded() -> Inspection {
    let target = GuardedTarget {
        path: ".vscode/x".into(),
        reason: "`.vscode` configures other programs".into(),
    };
    Inspection {
        guarded: Some(target),
        ..edit(None)
    }
}

fn site(is_known: bool) -> Inspection {
    let site = SiteAccess {
        host: "example.com".into(),
        url: Some("https://example.com".into()),
        is_known,
        summary: "open".into(),
    };
    Inspection {
        site: Some(site),
        ..Inspection::default()
    }
}

fn user_only() -> Inspection {
    Inspection {
        user_only: Some("it pays somebody".into()),
        ..edit(None)
    }
}

/// A call of a tool with this effect and risk, and what its inspection finds.
pub(crate) type Kind = (&'static str, Effect, Risk, Inspection);

pub(crate) fn bench_of(
    kind: &Kind,
    rules: Vec<ApprovalRule>,
    mode: PermissionMode,
) -> (Bench, Arc<CountingTool>) {
    let (name, effect, risk, inspection) = kind;
    let tool = CountingTool::new(name)
        .with_effect(*effect)
        .with_risk(*risk)
        .with_inspection(inspection.clone());
    let tool = if inspection.site.is_some() {
        tool.with_subject(RuleSubject::Site)
    } else {
        tool
    };
    let tool = Arc::new(tool);
    let mut bench = Bench::new(vec![Arc::clone(&tool) as Arc<dyn Tool>]);
    bench.rules = ApprovalRules::new(rules);
    bench.mode = ModeSwitch::new(mode);
    (bench, tool)
}

/// Runs a turn with one call and returns what became of it.
async fn fate(kind: &Kind, rules: Vec<ApprovalRule>, mode: PermissionMode) -> Fate {
    let (bench, tool) = bench_of(kind, rules, mode);
    let replies = [
        delegate_and_finish("operator", "work"),
        call(kind.0, json!({ "path": "a" })),
        say("Done."),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(replies)).start(local());
    match ask(&mut conversation, "work").await {
        TurnEnd::Waiting(_) => {
            assert_eq!(tool.runs(), 0);
            Fate::IsAsked
        }
        TurnEnd::Finished(_) if tool.runs() == 1 => Fate::Runs,
        TurnEnd::Finished(_) => {
            assert_eq!(
                (tool.runs(), denials(&bench, &conversation).await.len()),
                (0, 1)
            );
            Fate::IsDenied
        }
    }
}

/// Returns the results of denied calls.
pub(crate) async fn denials(bench: &Bench, conversation: &Conversation) -> Vec<String> {
    let log = log(bench, conversation.session()).await;
    let denied = log.iter().filter_map(|event| match &event.body {
        EventBody::ToolReturned {
            status: CallStatus::Denied,
            output,
            ..
        } => Some(output.to_string()),
        _ => None,
    });
    denied.collect()
}

#[tokio::test]
async fn each_mode_runs_asks_for_or_denies_each_kind_of_call() {
    use Effect::{Idempotent, NonIdempotent, Pure};
    use Fate::{IsAsked, IsDenied, Runs};
    use Risk::{Dangerous, Moderate, Safe};
    let cases: [(Kind, [Fate; 4]); 15] = [
        // The fates in the modes ask, accept-edits, read-only and plan.
        (
            ("fs_read", Pure, Safe, Inspection::default()),
            [Runs, Runs, Runs, Runs],
        ),
        (
            ("fs_read", Pure, Safe, site(true)),
            [Runs, Runs, Runs, Runs],
        ),
        (
            ("fs_read", Pure, Safe, site(false)),
            [IsAsked, IsAsked, IsAsked, IsAsked],
        ),
        (
            ("fs_read", NonIdempotent, Safe, Inspection::default()),
            [Runs, Runs, IsDenied, IsDenied],
        ),
        (
            ("fs_write", Idempotent, Moderate, edit(None)),
            [IsAsked, Runs, IsDenied, IsDenied],
        ),
        (
            ("fs_edit", NonIdempotent, Moderate, edit(None)),
            [IsAsked, Runs, IsDenied, IsDenied],
        ),
        (
            ("fs_edit", NonIdempotent, Dangerous, edit(None)),
            [IsAsked, IsAsked, IsDenied, IsDenied],
        ),
        (
            (
                "fs_write",
                Idempotent,
                Moderate,
                edit(Some("`Makefile` is executed by make")),
            ),
            [IsAsked, IsAsked, IsDenied, IsDenied],
        ),
        (
            ("fs_write", Idempotent, Moderate, irreversible_edit()),
            [IsAsked, IsAsked, IsDenied, IsDenied],
        ),
        (
            ("fs_write", Idempotent, Moderate, guarded()),
            [IsAsked, IsAsked, IsDenied, IsDenied],
        ),
        (
            ("fs_write", Idempotent, Moderate, user_only()),
            [IsAsked, IsAsked, IsDenied, IsDenied],
        ),
        // A tool of an MCP server can have any name, but finds nothing out about its calls.
        (
            ("fs_write", NonIdempotent, Moderate, Inspection::default()),
            [IsAsked, IsAsked, IsDenied, IsDenied],
        ),
        (
            ("exec", NonIdempotent, Dangerous, Inspection::default()),
            [IsAsked, IsAsked, IsDenied, IsDenied],
        ),
        (
            ("fs_write", NonIdempotent, Moderate, site(true)),
            [Runs, Runs, IsDenied, IsDenied],
        ),
        (
            ("fs_write", NonIdempotent, Moderate, site(false)),
            [IsAsked, IsAsked, IsDenied, IsDenied],
        ),
    ];
    for (kind, fates) in cases {
        for (mode, expected) in PermissionMode::ALL.into_iter().zip(fates) {
            assert_eq!(
                fate(&kind, Vec::new(), mode).await,
                expected,
                "{kind:?} in {mode}"
            );
        }
    }
}

#[tokio::test]
async fn rules_win_over_every_mode_except_that_no_rule_allows_a_change_in_read_only() {
    use Fate::{IsAsked, IsDenied, Runs};
    let kinds: [Kind; 2] = [
        ("fs_edit", Effect::NonIdempotent, Risk::Moderate, edit(None)),
        (
            "fs_edit",
            Effect::NonIdempotent,
            Risk::Moderate,
            edit(Some("`x` is executable")),
        ),
    ];
    for kind in kinds {
        for (action, fates) in [
            (RuleAction::Allow, [Runs, Runs, IsDenied, IsDenied]),
            (RuleAction::Ask, [IsAsked, IsAsked, IsDenied, IsDenied]),
            (
                RuleAction::AskEachTime,
                [IsAsked, IsAsked, IsDenied, IsDenied],
            ),
            (RuleAction::Deny, [IsDenied, IsDenied, IsDenied, IsDenied]),
        ] {
            for (mode, expected) in PermissionMode::ALL.into_iter().zip(fates) {
                let rules = vec![rule(action, "fs_*")];
                assert_eq!(
                    fate(&kind, rules, mode).await,
                    expected,
                    "{action:?} {kind:?} in {mode}"
                );
            }
        }
        let read: Kind = ("fs_read", Effect::Pure, Risk::Safe, Inspection::default());
        for mode in PermissionMode::ALL {
            let denied = vec![rule(RuleAction::Deny, "fs_*")];
            assert_eq!(fate(&read, denied, mode).await, IsDenied, "{mode}");
        }
    }
}

#[tokio::test]
async fn a_question_in_accept_edits_says_what_is_special_about_the_edit_and_can_be_granted() {
    let caution = "`Makefile` is executed by make";
    for (inspection, mode, reason) in [
        (edit(Some(caution)), AcceptEdits, caution),
        (irreversible_edit(), AcceptEdits, IRREVERSIBLE),
        (
            edit(Some(caution)),
            Ask,
            "it changes something, and no rule allows it",
        ),
    ] {
        let kind: Kind = ("fs_write", Effect::Idempotent, Risk::Moderate, inspection);
        let (bench, tool) = bench_of(&kind, Vec::new(), mode);
        let script = one_write("Makefile")
            .into_iter()
            .chain(one_write("Makefile"));
        let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
        let asked = waiting(ask(&mut conversation, "write").await);
        assert_eq!(&*asked[0].request.reason, reason);
        let pattern = asked[0].request.pattern.clone().expect("it can be granted");
        finished(answer(&mut conversation, ApprovalAnswer::Session { pattern }).await);
        finished(ask(&mut conversation, "again").await);
        assert_eq!(tool.runs(), 2, "granted in {mode}");
    }
}

#[tokio::test]
async fn a_denied_call_is_told_the_mode_and_what_to_do_instead() {
    let kind: Kind = ("fs_write", Effect::Idempotent, Risk::Moderate, edit(None));
    for (mode, advice) in [
        (
            ReadOnly,
            "the permission mode is `read-only`, so nothing was changed; say what you would change",
        ),
        (
            Plan,
            "the permission mode is `plan`, so nothing was changed; answer with a plan",
        ),
    ] {
        let (bench, _) = bench_of(&kind, Vec::new(), mode);
        let model = ScriptedModel::replies(one_write("a"));
        let mut conversation = bench.runner(model).start(local());
        finished(ask(&mut conversation, "write").await);
        let denied = denials(&bench, &conversation).await;
        assert!(denied[0].contains(advice), "{denied:?}");
    }
}

#[tokio::test]
async fn a_remote_agent_is_not_called_in_read_only() {
    for (mode, is_called) in [
        (Ask, true),
        (AcceptEdits, true),
        (ReadOnly, false),
        (Plan, false),
    ] {
        let remote = Arc::new(ScriptedRemote::from_fn("weather", |_| {
            vec![Ok(RemoteEvent::Answer(RemoteAnswer::from(
                "12 °C".to_owned(),
            )))]
        }));
        let mut bench = Bench::new(vec![Arc::new(CountingTool::new("fs_read"))]);
        bench.remotes = vec![Arc::clone(&remote) as _];
        bench.mode = ModeSwitch::new(mode);
        let script: [ModelReply; 2] = [delegate("weather", "is it warm?"), say("I cannot ask.")];
        let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
        finished(ask(&mut conversation, "is it warm?").await);
        assert_eq!(remote.calls().len(), usize::from(is_called), "{mode}");
        let log = log(&bench, conversation.session()).await;
        let returned = log.iter().find_map(|event| match &event.body {
            EventBody::RemoteReturned { status, output, .. } => Some((*status, output.to_string())),
            _ => None,
        });
        let (status, output) = returned.expect("every call has a result");
        if !is_called {
            assert_eq!(status, CallStatus::Error);
            assert!(output.contains(&format!("`{mode}`")), "{output}");
        }
    }
}

#[tokio::test]
async fn the_models_are_told_the_mode_of_the_start_of_the_turn_if_it_forbids_changes() {
    for (mode, sentence) in [
        (Ask, None),
        (AcceptEdits, None),
        (ReadOnly, Some("Permission mode: read-only.")),
        (Plan, Some("Permission mode: plan. Answer with a plan")),
    ] {
        let mut bench = Bench::new(vec![Arc::new(CountingTool::new("fs_read"))]);
        bench.mode = ModeSwitch::new(mode);
        let model = Arc::new(ScriptedModel::replies([
            delegate_and_finish("operator", "look"),
            call("fs_read", json!({})),
            say("Seen."),
        ]));
        let runner = bench.runner(Shared(Arc::clone(&model)));
        let mut conversation = runner.start(local());
        finished(ask(&mut conversation, "look").await);
        let requests = model.requests();
        for request in &requests {
            let Some(Message::User { text, .. }) = request.messages.first() else {
                panic!("{request:?}");
            };
            match sentence {
                Some(sentence) => assert!(text.contains(sentence), "{text}"),
                None => assert!(!text.contains("Permission mode"), "{text}"),
            }
        }
        assert_eq!(requests.len(), 3);
        // The log alone decides what a model was sent, whatever the mode is now.
        bench.mode.set(Ask);
        let log = log(&bench, conversation.session()).await;
        let reply = log
            .iter()
            .find(|event| event.body.kind() == "agent.message");
        let reply = reply.expect("the root replied");
        let recomputed = runner
            .model_call(conversation.session(), &reply.turn, reply.seq)
            .await;
        let recomputed = format!("{recomputed:?}");
        assert_eq!(recomputed.contains("Permission mode"), sentence.is_some());
        let EventBody::UserMessage { settings, .. } = &log[0].body else {
            panic!("{:?}", log[0]);
        };
        let stored = serde_json::to_value(settings).unwrap();
        let expected = (mode != Ask).then(|| json!(mode.name()));
        assert_eq!(stored.get("mode"), expected.as_ref(), "{mode}");
    }
}

#[tokio::test]
async fn a_question_is_an_accepted_edit_if_accept_edits_would_not_have_asked_it() {
    let kinds: [(Kind, Vec<ApprovalRule>, bool); 5] = [
        (
            ("fs_write", Effect::Idempotent, Risk::Moderate, edit(None)),
            vec![],
            true,
        ),
        (
            ("fs_write", Effect::Idempotent, Risk::Moderate, edit(None)),
            vec![rule(RuleAction::Ask, "fs_*")],
            false,
        ),
        (
            (
                "fs_write",
                Effect::Idempotent,
                Risk::Moderate,
                edit(Some("`x` is executable")),
            ),
            vec![],
            false,
        ),
        (
            ("fs_write", Effect::Idempotent, Risk::Moderate, guarded()),
            vec![],
            false,
        ),
        (
            (
                "exec",
                Effect::NonIdempotent,
                Risk::Dangerous,
                Inspection::default(),
            ),
            vec![],
            false,
        ),
    ];
    for (kind, rules, is_accepted) in kinds {
        let (bench, _) = bench_of(&kind, rules, Ask);
        let replies = [
            delegate_and_finish("operator", "work"),
            call(kind.0, json!({ "path": "a" })),
        ];
        let runner = bench.runner(ScriptedModel::replies(replies));
        let mut conversation = runner.start(local());
        let asked = waiting(ask(&mut conversation, "work").await);
        assert_eq!(runner.is_accepted_edit(&asked[0]), is_accepted, "{kind:?}");
    }
}
