//! The task that processes a browser's events: it applies each to the state of the tabs and starts the resulting
//! actions without waiting, so that events never queue up behind a slow page.

use crate::browser::Shared;
use crate::cdp::{CdpSession, Connection, EventStream, NoParams};
use crate::tabs::TabAction;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Processes events until the connection is lost.
pub(crate) async fn run(connection: Connection, shared: Arc<Shared>, mut events: EventStream) {
    while let Some(event) = events.recv().await {
        let actions = shared.tabs().apply(&event, Instant::now());
        for action in actions {
            tokio::spawn(carry_out(connection.clone(), Arc::clone(&shared), action));
        }
        shared.changes.send_modify(|count| *count += 1);
    }
    // Wakes the calls that wait for a change: the browser is gone.
    shared.changes.send_modify(|count| *count += 1);
}

/// Returns the parameters for attaching to new tabs before they run.
pub(crate) fn attach_tabs() -> Value {
    auto_attach(json!([{ "type": "page" }]))
}

/// Returns the parameters for attaching to the children of a page before they run: out-of-process frames, workers and
/// worklets. The browser pauses all of them, including those that lango does not attach to. So lango attaches to all
/// of them; otherwise some would stay paused forever. Service workers belong to no page and are not paused.
fn attach_children() -> Value {
    auto_attach(json!([{ "type": "service_worker", "exclude": true }, {}]))
}

fn auto_attach(filter: Value) -> Value {
    json!({
        "autoAttach": true,
        "waitForDebuggerOnStart": true,
        "flatten": true,
        "filter": filter,
    })
}

async fn carry_out(connection: Connection, shared: Arc<Shared>, action: TabAction) {
    // Errors are ignored: a target that disappeared needs nothing, and one that hangs fails the call that uses it.
    match action {
        TabAction::PrepareTab { session } => {
            prepare(
                &connection.session(Arc::clone(&session)),
                PageTargetKind::Tab,
            )
            .await;
            shared.tabs().set_ready(&session);
        }
        TabAction::PrepareFrame { session } => {
            prepare(
                &connection.session(Arc::clone(&session)),
                PageTargetKind::Frame,
            )
            .await;
            shared.tabs().set_ready(&session);
        }
        TabAction::PrepareWorker { session } => {
            prepare_worker(&connection.session(session)).await;
        }
        TabAction::Release { session } => release(&connection.session(session)).await,
        TabAction::CloseTab { target, session } => {
            let browser = connection.browser();
            let session = connection.session(session);
            // The page that opened the tab is blocked until the tab runs, so the tab is released as well as closed.
            // Both calls are sent together to keep it from running for long.
            let params = json!({ "targetId": target });
            tokio::join!(
                release(&session),
                send(&browser, "Target.closeTarget", params)
            );
        }
        TabAction::CancelDownload { id, context } => {
            let params = json!({ "guid": id, "browserContextId": shared.context_id(context) });
            send(&connection.browser(), "Browser.cancelDownload", params).await;
        }
        TabAction::AnswerDialog {
            session,
            accept,
            text,
        } => {
            let params = json!({ "accept": accept, "promptText": text });
            let session = connection.session(session);
            send(&session, "Page.handleJavaScriptDialog", params).await;
        }
        TabAction::EndPage { session } => end_page(&connection.session(session)).await,
    }
    shared.changes.send_modify(|count| *count += 1);
}

/// Kills the process of a page that opens dialogs in a loop. Neither terminating its scripts nor closing its tab ends a
/// script that waits in a dialog.
async fn end_page(session: &CdpSession) {
    let answer = async {
        // The crash command must arrive before the script continues, and the two messages take different paths.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let params = json!({ "accept": false });
        send(session, "Page.handleJavaScriptDialog", params).await;
    };
    tokio::join!(send(session, "Page.crash", json!({})), answer);
}

#[derive(PartialEq)]
enum PageTargetKind {
    Tab,
    Frame,
}

/// Sets up a tab or frame and lets it run. Sends all calls without waiting in between; the browser carries them out in
/// this order.
async fn prepare(session: &CdpSession, kind: PageTargetKind) {
    let own = async {
        if kind == PageTargetKind::Tab {
            let focus = json!({ "enabled": true });
            tokio::join!(
                send(session, "Emulation.setFocusEmulationEnabled", focus),
                send(
                    session,
                    "Page.setInterceptFileChooserDialog",
                    json!({ "enabled": true })
                ),
            );
        }
    };
    tokio::join!(
        send(session, "Page.enable", json!({})),
        send(session, "Runtime.enable", json!({})),
        send(session, "Network.enable", json!({ "maxPostDataSize": 0 })),
        send(session, "Target.setAutoAttach", attach_children()),
        own,
        release(session),
    );
}

/// Sets up a worker and lets it run. A worker has no page, so lango tracks only its requests and the workers that it
/// starts.
async fn prepare_worker(session: &CdpSession) {
    tokio::join!(
        send(session, "Network.enable", json!({ "maxPostDataSize": 0 })),
        send(session, "Target.setAutoAttach", attach_children()),
        release(session),
    );
}

async fn release(session: &CdpSession) {
    let _: Result<Value, _> = session
        .call("Runtime.runIfWaitingForDebugger", NoParams {})
        .await;
}

async fn send(session: &CdpSession, method: &'static str, params: Value) {
    let _: Result<Value, _> = session.call(method, params).await;
}
