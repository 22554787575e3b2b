//! Refused requests, and the format of errors over both bindings.

use super::support::{TestServer, message, normalize, read, reason, sent, with_timeout};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn an_error_has_the_format_of_its_binding() {
    let server = TestServer::start().await;
    let info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org",
        "metadata": { "taskId": "t", "timestamp": "TIME" },
    });
    let answer = server.rpc("GetTask", json!({ "id": "t" })).await;
    assert_eq!(
        normalize(answer),
        json!({
            "jsonrpc": "2.0", "id": 7,
            "error": { "code": -32001, "message": "task `t` does not exist", "data": [info] },
        })
    );
    let (status, body) = server.get("/tasks/t").await;
    assert_eq!(status, 404);
    assert_eq!(
        normalize(body),
        json!({ "error": {
        "code": 404, "status": "NOT_FOUND", "message": "task `t` does not exist", "details": [info],
    } })
    );
}

#[tokio::test]
async fn the_refusal_of_an_invalid_message_names_the_field() {
    let server = TestServer::start().await;
    let with = |key: &str, value: Value| {
        let mut message = message("x");
        message[key] = value;
        message
    };
    let cases = [
        (Value::Null, "message"),
        (json!("hi"), "message"),
        (with("messageId", Value::Null), "message.messageId"),
        (with("messageId", json!("")), "message.messageId"),
        (with("messageId", json!(5)), "message.messageId"),
        (
            with("messageId", json!("x".repeat(257))),
            "message.messageId",
        ),
        (
            with("contextId", json!("x".repeat(257))),
            "message.contextId",
        ),
        (with("contextId", json!({})), "message.contextId"),
        (with("taskId", json!(1)), "message.taskId"),
        (with("role", Value::Null), "message.role"),
        (with("role", json!("ROLE_AGENT")), "message.role"),
        (with("role", json!("ROLE_UNSPECIFIED")), "message.role"),
        (with("role", json!("user")), "message.role"),
        (with("role", json!(1)), "message.role"),
        (with("parts", Value::Null), "message.parts"),
        (with("parts", json!([])), "message.parts"),
        (with("parts", json!({ "text": "x" })), "message.parts"),
        (with("parts", json!(["x"])), "message.parts[0]"),
        (
            with("parts", json!([{ "text": "x" }, {}])),
            "message.parts[1]",
        ),
        (
            with("parts", json!([{ "text": "x", "url": "y" }])),
            "message.parts[0]",
        ),
        (
            with("parts", json!([{ "text": 5 }])),
            "message.parts[0].text",
        ),
        (
            with("parts", json!([{ "raw": "*" }])),
            "message.parts[0].raw",
        ),
        (
            with("parts", json!([{ "text": "x", "mediaType": 1 }])),
            "message.parts[0].mediaType",
        ),
        (
            with("parts", json!([{ "text": "x", "metadata": [] }])),
            "message.parts[0].metadata",
        ),
        (with("metadata", json!("x")), "message.metadata"),
        (with("extensions", json!([1])), "message.extensions"),
        (
            with("referenceTaskIds", json!("x")),
            "message.referenceTaskIds",
        ),
        (message("odd"), "message.parts[0].text"),
    ];
    for (message, field) in cases {
        let body = json!({ "message": message });
        let error = server.error("SendMessage", body.clone()).await;
        assert_eq!(
            (&error["code"], reason(&error["data"])),
            (&json!(-32602), "INVALID_PARAMS")
        );
        assert_eq!(
            error["data"][1]["@type"],
            "type.googleapis.com/google.rpc.BadRequest"
        );
        assert_eq!(
            error["data"][1]["fieldViolations"][0]["field"], field,
            "{message}"
        );
        let (status, body) = server.http(Method::POST, "/message:send", Some(body)).await;
        assert_eq!(
            (status.as_u16(), &body["error"]["status"]),
            (400, &json!("INVALID_ARGUMENT"))
        );
        assert_eq!(
            body["error"]["details"][1]["fieldViolations"][0]["field"],
            field
        );
    }
    let configurations = [
        ("historyLength", json!(-1)),
        ("returnImmediately", json!("soon")),
        ("acceptedOutputModes", json!("text/plain")),
    ];
    for (field, value) in configurations {
        let params = json!({ "message": message("x"), "configuration": { field: value } });
        let error = server.error("SendMessage", params).await;
        let named = format!("configuration.{field}");
        assert_eq!(error["data"][1]["fieldViolations"][0]["field"], named);
    }
    let error = server
        .error(
            "SendMessage",
            json!({ "message": message("x"), "configuration": 1 }),
        )
        .await;
    assert_eq!(error["code"], -32602);
    assert!(server.agent.runs.lock().unwrap().is_empty());
}

#[tokio::test]
async fn unsupported_content_is_refused_with_the_content_type_error() {
    let server = TestServer::start().await;
    let parts = [
        json!({ "url": "https://example.com/x" }),
        json!({ "raw": "aGk=", "mediaType": "image/png" }),
        json!({ "data": { "a": 1 } }),
        json!({ "data": null }),
        json!({ "text": "x", "mediaType": "text/html" }),
        json!({ "text": "unfit" }),
    ];
    for part in parts {
        let mut message = message("x");
        message["parts"] = json!([part]);
        let body = json!({ "message": message });
        let error = server.error("SendMessage", body.clone()).await;
        let expected = (&json!(-32005), "CONTENT_TYPE_NOT_SUPPORTED");
        assert_eq!((&error["code"], reason(&error["data"])), expected, "{part}");
        let (status, body) = server
            .http(Method::POST, "/message:stream", Some(body))
            .await;
        assert_eq!(status, 400);
        assert_eq!(reason(&body["error"]["details"]), expected.1);
    }
    let mut plain = message("x");
    plain["parts"][0]["mediaType"] = json!("Text/Plain; charset=utf-8");
    server
        .result("SendMessage", json!({ "message": plain }))
        .await;
}

#[tokio::test]
async fn only_version_1_0_is_served() {
    let server = TestServer::start().await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" });
    let cases = [
        (None, false),
        (Some(""), false),
        (Some("0.3"), false),
        (Some("1.1"), false),
        (Some("1"), false),
        (Some("10.0"), false),
        (Some("1.0.x"), false),
        (Some("1.0."), false),
        (Some("99.0"), false),
        (Some("1.0"), true),
        (Some(" 1.0 "), true),
        (Some("1.0.1"), true),
    ];
    for (version, is_served) in cases {
        for (method, path) in [(Method::POST, "/"), (Method::GET, "/tasks")] {
            let mut request = server
                .client
                .request(method.clone(), format!("{}{path}", server.base));
            if let Some(version) = version {
                request = request.header("a2a-version", version);
            }
            let answer = if path == "/" {
                let response = sent(request, &body).await;
                assert_eq!(response.status(), 200);
                read(response).await["error"]["data"].clone()
            } else {
                let response = with_timeout(request.send()).await.unwrap();
                assert_eq!(response.status(), if is_served { 200 } else { 400 });
                read(response).await["error"]["details"].clone()
            };
            if is_served {
                assert_eq!(answer, Value::Null, "{version:?}");
            } else {
                assert_eq!(reason(&answer), "VERSION_NOT_SUPPORTED", "{version:?}");
            }
        }
    }
    let address = format!("{}/tasks?A2A-Version=1.0", server.base);
    assert_eq!(
        with_timeout(server.client.get(address).send())
            .await
            .unwrap()
            .status(),
        200
    );
    let request = server.request(Method::GET, "/tasks");
    let request = request.header("A2A-Extensions", "https://example.com/unknown/v1");
    assert_eq!(with_timeout(request.send()).await.unwrap().status(), 200);
}

#[tokio::test]
async fn invalid_json_rpc_calls_are_refused() {
    let server = TestServer::start().await;
    let cases = [
        ("{", -32700, Value::Null),
        ("", -32700, Value::Null),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1, }", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ListTasks\"}]",
            -32600,
            Value::Null,
        ),
        ("5", -32600, Value::Null),
        (
            "{\"jsonrpc\":\"2.0\",\"method\":\"ListTasks\"}",
            -32600,
            Value::Null,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ListTasks\"}",
            -32600,
            Value::Null,
        ),
        ("{\"id\":1,\"method\":\"ListTasks\"}", -32600, json!(1)),
        (
            "{\"jsonrpc\":\"1.0\",\"id\":\"a\",\"method\":\"ListTasks\"}",
            -32600,
            json!("a"),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":7}",
            -32600,
            json!(3),
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":3}", -32600, json!(3)),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"message/send\"}",
            -32601,
            json!("x"),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"listTasks\"}",
            -32601,
            Value::Null,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ListTasks\",\"params\":[]}",
            -32602,
            json!(4),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"GetTask\",\"params\":{}}",
            -32602,
            json!(4),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"GetTask\",\"params\":{\"id\":\"\"}}",
            -32602,
            json!(4),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":-7,\"method\":\"CancelTask\"}",
            -32602,
            json!(-7),
        ),
    ];
    for (body, code, id) in cases {
        let request = server
            .request(Method::POST, "/")
            .header("content-type", "application/json");
        let response = with_timeout(request.body(body).send()).await.unwrap();
        assert_eq!(response.status(), 200);
        let answer = read(response).await;
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &id),
            "{body}"
        );
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer.get("id").is_some() && answer.get("result").is_none());
    }
}

#[tokio::test]
async fn a_body_without_a_json_content_type_is_refused() {
    let server = TestServer::start().await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" }).to_string();
    let send = json!({ "message": message("x") }).to_string();
    for (kind, is_taken) in [
        ("application/json", true),
        ("application/json; charset=utf-8", true),
        ("Application/A2A+JSON", true),
        ("text/plain", false),
        ("application/x-www-form-urlencoded", false),
        ("application/jsonp", false),
    ] {
        let request = server
            .request(Method::POST, "/")
            .header("content-type", kind);
        let answer = read(
            with_timeout(request.body(call.clone()).send())
                .await
                .unwrap(),
        )
        .await;
        let code = answer["error"]["code"].as_i64();
        assert_eq!(code, (!is_taken).then_some(-32005), "{kind}");
        let request = server
            .request(Method::POST, "/message:send")
            .header("content-type", kind);
        let response = with_timeout(request.body(send.clone()).send())
            .await
            .unwrap();
        assert_eq!(
            response.status(),
            if is_taken { 200 } else { 400 },
            "{kind}"
        );
    }
}

#[tokio::test]
async fn unsupported_operations_are_refused_with_the_errors_of_the_protocol() {
    let server = TestServer::start().await;
    for method in ["Create", "Get", "Delete"] {
        let method = format!("{method}TaskPushNotificationConfig");
        assert_eq!(server.error(&method, json!({})).await["code"], -32003);
    }
    let error = server
        .error("ListTaskPushNotificationConfigs", json!({ "taskId": "t" }))
        .await;
    assert_eq!(
        (&error["code"], reason(&error["data"])),
        (&json!(-32003), "PUSH_NOTIFICATION_NOT_SUPPORTED")
    );
    let params = json!({
        "message": message("x"),
        "configuration": { "taskPushNotificationConfig": { "url": "https://example.com" } },
    });
    assert_eq!(server.error("SendMessage", params).await["code"], -32003);
    assert_eq!(
        server.error("GetExtendedAgentCard", json!({})).await["code"],
        -32004
    );

    let base = "/tasks/t/pushNotificationConfigs";
    let one = format!("{base}/c");
    for (method, path, why) in [
        (Method::POST, base, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        (Method::GET, base, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        (Method::GET, &one, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        (Method::DELETE, &one, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        (Method::GET, "/extendedAgentCard", "UNSUPPORTED_OPERATION"),
    ] {
        let (status, body) = server.http(method, path, None).await;
        assert_eq!(status, 400);
        assert_eq!(body["error"]["status"], "FAILED_PRECONDITION");
        assert_eq!(reason(&body["error"]["details"]), why);
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused() {
    let server = TestServer::start().await;
    for (method, path, status, allowed) in [
        (Method::GET, "/nowhere", 404, None),
        (Method::GET, "/tasks/", 404, None),
        (Method::GET, "/tasks/a:explode", 404, None),
        (Method::GET, "/tasks/%zz", 404, None),
        (Method::GET, "/tasks/%ff", 404, None),
        (Method::GET, "/a/b/c/d/e/f", 404, None),
        (Method::POST, "/tasks", 405, Some("GET")),
        (Method::DELETE, "/tasks/a", 405, Some("GET")),
        (Method::GET, "/message:send", 405, Some("POST")),
        (Method::PUT, "/tasks/a:subscribe", 405, Some("POST, GET")),
        (
            Method::POST,
            "/.well-known/agent-card.json",
            405,
            Some("GET, HEAD"),
        ),
    ] {
        let response = with_timeout(server.request(method, path).send())
            .await
            .unwrap();
        assert_eq!(response.status().as_u16(), status, "{path}");
        let allow = response
            .headers()
            .get("allow")
            .map(|allow| allow.to_str().unwrap().to_owned());
        assert_eq!(allow.as_deref(), allowed, "{path}");
        assert_eq!(read(response).await["error"]["code"], status);
    }
    let response = with_timeout(server.request(Method::GET, "/").send())
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(read(response).await["error"]["code"], -32600);
}

#[tokio::test]
async fn a_request_without_a_user_is_refused() {
    let mut settings = super::support::settings();
    settings.default_user = None;
    let server = TestServer::with(settings).await;
    let (status, body) = server.get("/tasks").await;
    assert_eq!(
        (status.as_u16(), &body["error"]["status"]),
        (401, &json!("UNAUTHENTICATED"))
    );
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" });
    let response = sent(server.request(Method::POST, "/"), &call).await;
    assert_eq!(response.status(), 401);
    let response = sent(
        server.request(Method::POST, "/").header("x-user", "ann"),
        &call,
    )
    .await;
    assert_eq!(response.status(), 200);
    let card = format!("{}/.well-known/agent-card.json", server.base);
    assert_eq!(
        with_timeout(server.client.get(card).send())
            .await
            .unwrap()
            .status(),
        200
    );
}

#[tokio::test]
async fn a_message_that_is_nested_too_deeply_is_refused_and_others_stay_readable() {
    let server = TestServer::start().await;
    let nested = |levels: usize| {
        let mut value = json!(1);
        for _ in 0..levels {
            value = json!([value]);
        }
        value
    };
    for (levels, is_taken) in [(50, true), (63, true), (64, false), (100, false)] {
        let mut message = message(&format!("deep {levels}"));
        message["metadata"] = json!({ "a": nested(levels) });
        let answer = server
            .rpc("SendMessage", json!({ "message": message }))
            .await;
        assert_eq!(answer["error"].is_null(), is_taken, "{levels}: {answer}");
    }
    let answer = server.rpc("ListTasks", json!({})).await;
    assert!(answer["error"].is_null(), "{answer}");
}
