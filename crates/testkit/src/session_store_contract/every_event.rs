//! A sample log with every kind of event.

use super::samples::{LogBuilder, ROOT, finished, message};
use lango_core::{
    AgentModel, AgentName, AnswerSource, ApprovalAnswer, ApprovalId, Call, CallId, CallStatus,
    Effect, EventBatch, EventBody, Limit, Limits, MessageOrigin, OpaqueData, Outcome, Price,
    PriceTier, RemoteThread, SessionId, SkippedPath, StopReason, Text, ToolName, Trust, TurnFault,
    TurnId, TurnSettings, Usage,
};
use serde_json::json;
use std::sync::Arc;

/// Returns a log with every kind of event, and with values that encodings easily lose.
pub fn every_kind_of_event(session: &SessionId) -> EventBatch {
    let text = |text: &str| Text::from(text);
    let call = Call {
        id: CallId::from("c_1"),
        name: text("fs_read"),
        arguments: text("{\"path\": \"a\\u0000b\"}"),
    };
    let settings = TurnSettings {
        limits: Limits::default(),
        model: text("offline/rules"),
        topology: text("d1"),
        folder: None,
        price: Some(Price {
            input: 0.1,
            cached: 1e-3,
            cache_write: Some(0.125),
            output: 75.0,
            tier: Some(PriceTier {
                above_tokens: 200_000,
                input: 0.2,
                cached: 2e-3,
                cache_write: None,
                output: 112.5,
            }),
        }),
        context_tokens: Some(200_000),
        memory: Some(text("- likes ä\n")),
        history_trust: Trust::Trusted,
        models: [(
            AgentName::from("poet"),
            AgentModel {
                model: text("other/model"),
                price: None,
                context_tokens: Some(8_000),
            },
        )]
        .into(),
        ..TurnSettings::default()
    };
    let usage = Usage {
        input_tokens: u64::MAX,
        cached_tokens: 2,
        cache_write_tokens: u64::MAX,
        output_tokens: 1,
        reasoning_tokens: 3,
    };
    let arguments = json!({ "path": "ä\n😀", "deep": [null, -1, u64::MAX, 1.1e-7, 5e-324, 6.02214076e23], "": {} });
    let builder = LogBuilder::new(session)
        .ask("what is in the file?")
        .add(
            "user",
            "",
            EventBody::UserMessage {
                text: text(""),
                origin: Some(MessageOrigin::Pipe { typed_bytes: 7 }),
                settings: Some(Box::new(settings)),
                attachments: Vec::new(),
            },
        )
        .add(ROOT, "", message("let me see", Trust::Untrusted))
        .add(
            ROOT,
            "",
            EventBody::AgentMessage {
                text: text(""),
                calls: vec![
                    call.clone(),
                    Call {
                        id: CallId::from("c_2"),
                        ..call
                    },
                ],
                is_final: false,
                model: Some(text("offline/rules")),
                usage,
                cost_micros: Some(u64::MAX),
                opaque: Some(OpaqueData {
                    kind: text("anthropic"),
                    model: Some(text("anthropic/claude")),
                    data: Arc::new(json!([{ "type": "thinking", "signature": "ä==" }, 1.5])),
                }),
                stop: StopReason::Filtered {
                    detail: text("it refused"),
                },
                trust: Trust::Trusted,
            },
        )
        .delegate("c_1", "operator", "read it", true)
        .add(
            "operator",
            "c_1",
            EventBody::AgentRejected {
                reason: text("not mine"),
            },
        )
        .add(
            "operator",
            "c_1",
            EventBody::ToolCalled {
                call: CallId::from("c_1/1"),
                tool: ToolName::from("fs_read"),
                arguments: Arc::new(arguments),
                effect: Effect::Pure,
                inspection: Default::default(),
            },
        )
        .add(
            "distant",
            "c_2",
            EventBody::RemoteCalled {
                task: text("find it"),
            },
        )
        .add(
            "distant",
            "c_2",
            EventBody::RemoteReturned {
                status: CallStatus::Ok,
                output: text("found"),
                is_final: true,
                thread: Some(RemoteThread {
                    context: text("context-1"),
                    task: None,
                }),
                attachments: Vec::new(),
            },
        )
        .add(
            "distant",
            "c_2",
            EventBody::RemoteAccepted {
                thread: RemoteThread {
                    context: text("context-1"),
                    task: Some(text("task-1")),
                },
            },
        );
    let returns = [
        CallStatus::Ok,
        CallStatus::Error,
        CallStatus::Denied,
        CallStatus::Unknown,
    ];
    let builder = returns.into_iter().fold(builder, |builder, status| {
        builder.add(
            "operator",
            "c_1",
            EventBody::ToolReturned {
                call: CallId::from("c_1/1"),
                status,
                output: text("\0"),
                trust: match status {
                    CallStatus::Ok => Trust::Trusted,
                    _ => Trust::Untrusted,
                },
                attachments: Vec::new(),
            },
        )
    });
    let requests = [Some(text("*\n")), None];
    let builder = requests
        .into_iter()
        .enumerate()
        .fold(builder, |builder, (number, pattern)| {
            builder.request(&format!("p_{number}"), pattern)
        });
    let answers = [
        (
            ApprovalAnswer::Session {
                pattern: text("ä*"),
            },
            AnswerSource::Person,
        ),
        (
            ApprovalAnswer::Always {
                pattern: text(""),
                folder: text("/x"),
            },
            AnswerSource::Person,
        ),
        (
            ApprovalAnswer::Once,
            AnswerSource::Grant {
                grant: ApprovalId::from("p_0"),
            },
        ),
        (
            ApprovalAnswer::No { reason: None },
            AnswerSource::Unattended,
        ),
        (ApprovalAnswer::Retry, AnswerSource::Person),
        (ApprovalAnswer::Skip, AnswerSource::Person),
        (
            ApprovalAnswer::Happened {
                text: text("it was sent"),
            },
            AnswerSource::Person,
        ),
        (
            ApprovalAnswer::No {
                reason: Some(text("not now")),
            },
            AnswerSource::TurnEnded,
        ),
    ];
    let builder = answers.into_iter().fold(builder, |builder, (answer, by)| {
        let request = ApprovalId::from("p_0");
        builder.add(
            "user",
            "c_1",
            EventBody::ApprovalAnswered {
                request,
                answer,
                by,
            },
        )
    });
    let corrections = [None, Some(CallId::from("c_9"))];
    let builder = corrections.into_iter().fold(builder, |builder, call| {
        builder.add(
            ROOT,
            "",
            EventBody::TurnCorrected {
                fault: TurnFault::UnknownAgent,
                call,
                detail: text("no such agent"),
                context_tokens: Some(1000),
            },
        )
    });
    let outcomes = [
        Outcome::Answered { limit: None },
        Outcome::Answered {
            limit: Some(Limit::Rounds),
        },
        Outcome::Limited { limit: Limit::Time },
        Outcome::Failed {
            error: text("the model is gone"),
            setup: true,
            fault: Some(text("bad_key")),
        },
        Outcome::Cancelled,
        Outcome::Interrupted,
    ];
    let builder = outcomes.into_iter().fold(builder, |builder, outcome| {
        builder.add(ROOT, "", finished(outcome, Some(3)))
    });
    let skipped = vec![SkippedPath {
        path: text("a/b"),
        reason: text("it changed"),
    }];
    let mut builder = builder.cancel().undo("t_2", &["ä\0\n"]).add(
        "user",
        "",
        EventBody::TurnUndone {
            undone: TurnId::from("t_none"),
            restored: Vec::new(),
            skipped,
            trust: Trust::Untrusted,
        },
    );
    builder.batch()
}
