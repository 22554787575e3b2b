//! Runs lango's client against lango's server, over both bindings, with and without streaming.

use crate::client::script::{BOTH, card, run_call, send, send_in, settings, timeouts};
use crate::client::support::{Server, json};
use crate::server::support::TestServer;
use futures_util::StreamExt;
use lango_a2a::client::{A2aAgent, connect};
use lango_core::{RemoteAgent, RemoteCall, RemoteEvent};
use std::sync::Arc;

/// Connects to an agent over each binding, with and without streaming. Each one has a separate server, because a server
/// treats the same call as the same task.
async fn agents() -> Vec<(TestServer, Arc<A2aAgent>)> {
    let mut agents = Vec::new();
    for binding in BOTH {
        for streams in [false, true] {
            let server = TestServer::start().await;
            let base = server.base.clone();
            let cards = Server::start(move |_| {
                let mut card = card(&base, binding, streams);
                card["supportedInterfaces"][0]["url"] = base.clone().into();
                json(200, &card)
            })
            .await;
            let agent = connect(&settings(&cards.url), &timeouts()).await;
            agents.push((server, agent.unwrap()));
        }
    }
    agents
}

#[tokio::test]
async fn tasks_end_with_the_outcome_that_the_server_reports() {
    for (_server, agent) in agents().await {
        for (text, expected) in [
            ("artifact forty-two", "forty-two"),
            ("chunks 5", "0 1 2 3 4 "),
            ("anything", "done: anything"),
            ("reject not today", "[REJECT] not today"),
        ] {
            let (events, ended) = run_call(&agent, send(text)).await;
            assert!(matches!(events[0], RemoteEvent::Accepted(_)), "{events:?}");
            let answer = ended.unwrap();
            assert_eq!(answer.text, expected);
            assert_eq!(answer.thread.unwrap().task, None);
        }
        let (events, ended) = run_call(&agent, send("hello")).await;
        assert!(events.is_empty() && ended.is_ok(), "{events:?} {ended:?}");
        for (text, expected) in [
            ("fail no flour", "it reports that the task failed: no flour"),
            (
                "authorise",
                "it needs an authorization that lango cannot give: may I?",
            ),
        ] {
            let error = run_call(&agent, send(text)).await.1.unwrap_err();
            assert_eq!((error.detail.as_str(), error.is_unknown), (expected, false));
        }
        let error = run_call(&agent, send("unfit")).await.1.unwrap_err();
        assert!(
            error.detail.ends_with("not this one") && !error.is_unknown,
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_reply_to_a_question_continues_the_task_in_the_same_context() {
    for (_server, agent) in agents().await {
        let question = run_call(&agent, send("ask which?")).await.1.unwrap();
        assert_eq!(question.text, "which?");
        let asked = question.thread.clone().unwrap();
        assert!(asked.task.is_some());
        let reply = send_in("artifact this", question.thread);
        let (_, ended) = run_call(&agent, reply).await;
        let answer = ended.unwrap();
        assert_eq!(answer.text, "this");
        assert_eq!(answer.thread.unwrap().context, asked.context);
    }
}

#[tokio::test]
async fn a_task_is_resumed_after_a_disconnect_and_can_be_cancelled() {
    for (server, agent) in agents().await {
        let mut stream = agent.call(send("hold"));
        let Some(Ok(RemoteEvent::Accepted(thread))) = stream.next().await else {
            panic!("it is accepted");
        };
        drop(stream);
        server.agent.gate.add_permits(1);
        let (_, ended) = run_call(&agent, RemoteCall::Resume { thread }).await;
        assert_eq!(ended.unwrap().text, "held");

        let mut stream = agent.call(send("until-cancelled"));
        let Some(Ok(RemoteEvent::Accepted(thread))) = stream.next().await else {
            panic!("it is accepted");
        };
        agent.cancel(&thread).await;
        let last = stream.next().await.unwrap().unwrap_err();
        assert!(
            last.detail
                .starts_with("it reports that the task was cancelled"),
            "{last}"
        );
    }
}
