//! Calls a remote agent and prints its events, one JSON object per line.
//!
//! ```text
//! call CARD_URL TEXT [--reply TEXT] [--cancel | --go-on] [--token-env NAME]
//! ```
//!
//! `--reply` answers a question of the agent. `--cancel` cancels the task as soon as its id is known. `--go-on`
//! disconnects at that point and resumes the task, as lango does after a restart. `--token-env` names the environment
//! variable with the token. The exit code is 0 if there is an answer, and 1 if not.

use futures_util::StreamExt;
use lango_a2a::client::{A2aAgent, RemoteSettings, RemoteTimeouts, connect};
use lango_core::{RemoteAgent, RemoteAnswer, RemoteCall, RemoteEvent, RemoteThread};
use lango_secrets::{Credential, Masks, SecretValue};
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Default)]
struct Arguments {
    card_url: String,
    text: String,
    reply: Option<String>,
    token_env: Option<String>,
    cancels: bool,
    resumes: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("call CARD_URL TEXT [--reply TEXT] [--cancel | --go-on] [--token-env NAME]");
        return ExitCode::from(2);
    };
    let token_env = arguments.token_env.as_deref();
    let masks = Masks::default();
    let settings = RemoteSettings {
        name: "remote".into(),
        card_url: arguments.card_url.clone(),
        token: token_env.and_then(|name| {
            let value = SecretValue::new(std::env::var(name).ok()?);
            Some(Credential::fixed(name, value, &masks))
        }),
        headers: Vec::new(),
        timeout: None,
        masks,
        token_source: match token_env {
            Some(name) => format!("environment variable `{name}`"),
            None => "`--token-env`".to_owned(),
        },
    };
    let agent = match connect(&settings, &RemoteTimeouts::default()).await {
        Ok(agent) => agent,
        Err(skipped) => {
            print(&json!({ "skipped": skipped.to_string() }));
            return ExitCode::FAILURE;
        }
    };
    print(
        &json!({ "connected": agent.interface_url(), "binding": agent.binding().name(),
        "streams": agent.streams(), "description": agent.description() }),
    );
    let mut answer = run_call(&agent, &arguments, &arguments.text, None).await;
    if let (Some(question), Some(reply)) = (&answer, &arguments.reply)
        && question
            .thread
            .as_ref()
            .is_some_and(|thread| thread.task.is_some())
    {
        answer = run_call(&agent, &arguments, reply, question.thread.clone()).await;
    }
    match answer {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}

/// Runs one call to its end, and prints its events.
async fn run_call(
    agent: &A2aAgent,
    arguments: &Arguments,
    text: &str,
    thread: Option<RemoteThread>,
) -> Option<RemoteAnswer> {
    let key = format!("{}/{text}", std::process::id());
    let text = text.into();
    let mut stream = agent.call(RemoteCall::Send {
        key,
        text,
        files: Vec::new(),
        thread,
    });
    while let Some(event) = stream.next().await {
        match event {
            Ok(RemoteEvent::Accepted(thread)) => {
                print(
                    &json!({ "accepted": { "context": &*thread.context, "task": thread.task.as_deref() } }),
                );
                if arguments.cancels {
                    agent.cancel(&thread).await;
                    print(&json!({ "cancelled": thread.task.as_deref() }));
                }
                if arguments.resumes {
                    stream = agent.call(RemoteCall::Resume { thread });
                }
            }
            Ok(RemoteEvent::Text(text)) => print(&json!({ "text": text })),
            Ok(RemoteEvent::Withdrawn) => print(&json!({ "withdrawn": true })),
            Ok(RemoteEvent::Answer(answer)) => {
                let task = answer
                    .thread
                    .as_ref()
                    .and_then(|thread| thread.task.as_deref());
                print(&json!({ "answer": answer.text, "waits": task.is_some() }));
                return Some(answer);
            }
            Err(error) => {
                print(&json!({ "error": error.to_string(), "unknown": error.is_unknown }))
            }
        }
    }
    None
}

fn print(line: &Value) {
    println!("{line}");
}

fn arguments() -> Option<Arguments> {
    let mut arguments = Arguments::default();
    let mut plain = Vec::new();
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--reply" => arguments.reply = Some(given.next()?),
            "--token-env" => arguments.token_env = Some(given.next()?),
            "--cancel" => arguments.cancels = true,
            "--go-on" => arguments.resumes = true,
            _ => plain.push(argument),
        }
    }
    [arguments.card_url, arguments.text] = plain.try_into().ok()?;
    Some(arguments)
}
