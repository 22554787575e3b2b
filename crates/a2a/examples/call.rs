//! Calls a remote agent and prints what comes of it, one JSON object a line.
//!
//! ```text
//! call CARD_URL TEXT [--reply TEXT] [--cancel | --go-on] [--token-env NAME]
//! ```
//!
//! `--reply` answers the agent's question; `--cancel` stops the task as soon as it has a name; `--go-on` hangs up there
//! and asks for the task anew, as lango does after a restart. The token comes from the environment variable that
//! `--token-env` names. Exit code 0: an answer; 1: none.

use futures_util::StreamExt;
use lango_a2a::client::{A2aAgent, Patience, RemoteSettings, connect};
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
    goes_on: bool,
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
    let agent = match connect(&settings, &Patience::default()).await {
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
    let mut answer = hear(&agent, &arguments, &arguments.text, None).await;
    if let (Some(found), Some(reply)) = (&answer, &arguments.reply)
        && found
            .thread
            .as_ref()
            .is_some_and(|thread| thread.task.is_some())
    {
        answer = hear(&agent, &arguments, reply, found.thread.clone()).await;
    }
    match answer {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}

/// Hears one call to its end.
async fn hear(
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
                if arguments.goes_on {
                    stream = agent.call(RemoteCall::GoOn { thread });
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
            "--go-on" => arguments.goes_on = true,
            _ => plain.push(argument),
        }
    }
    [arguments.card_url, arguments.text] = plain.try_into().ok()?;
    Some(arguments)
}
