//! The vault's tools with a real vault: their results, and that none of them reveals a value.

use crate::{NOW, key_file, name, set, vault_of};
use lango_core::{
    BoxFuture, Caller, Clock, Inspection, OutputSink, PreviewLength, PreviewRequest,
    RecordSelection, Timestamp, Tool, Trust, UserId,
};
use lango_secrets::{Binding, BindingTarget, SecretError, SecretValue, ServerToolId};
use lango_store::Store;
use lango_testkit::clock_and_ids::ManualClock;
use lango_vault::{
    FieldPlace, NewSecret, OpenVault, SealedVault, SecretField, SecretKind, Vault, VaultProvider,
    vault_tools,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Provides an open vault, and a value that the user typed.
struct Provider {
    vault: Vault,
    open: Arc<OpenVault>,
    typed: Mutex<Option<SecretValue>>,
    can_prompt: bool,
}

impl VaultProvider for Provider {
    fn sealed<'a>(
        &'a self,
        _: &'a UserId,
    ) -> BoxFuture<'a, Result<Option<SealedVault>, SecretError>> {
        Box::pin(async { Ok(self.vault.read(RecordSelection::None).await.unwrap()) })
    }

    fn open<'a>(&'a self, _: &'a UserId) -> BoxFuture<'a, Result<Arc<OpenVault>, SecretError>> {
        Box::pin(async { Ok(Arc::clone(&self.open)) })
    }

    fn report(&self, _: &str) {}

    fn can_prompt(&self) -> bool {
        self.can_prompt
    }

    fn take_typed(&self, _: &str) -> Option<SecretValue> {
        self.typed.lock().unwrap().take()
    }

    fn fields(&self) -> Vec<SecretField> {
        let field = |tool: &str, arguments: &[&str], place| SecretField {
            tool: tool.into(),
            place,
            arguments: Some(arguments.iter().map(|name| (*name).into()).collect()),
        };
        let shop = ServerToolId {
            server: "shop".into(),
            tool: "login".into(),
        };
        vec![
            field("shop_login", &["password", "pin"], FieldPlace::Server(shop)),
            field("browser_act", &["text"], FieldPlace::Site),
        ]
    }

    fn check_place(&self, binding: &Binding) -> Result<Option<String>, String> {
        SecretField::check(&self.fields(), binding)?;
        match &binding.target {
            BindingTarget::Header { origin, .. } if origin.host() == "closed.example" => {
                Ok(Some("add `closed.example` to the network".to_owned()))
            }
            _ => Ok(None),
        }
    }
}

/// The tools with a vault that contains the secret `TOKEN`.
struct Fixture {
    provider: Arc<Provider>,
    clock: Arc<ManualClock>,
    tools: Vec<Arc<dyn Tool>>,
}

impl Fixture {
    async fn new(typed: Option<&str>) -> Self {
        let (vault, clock) = vault_of("ann", Arc::new(Store::in_memory()));
        let open = vault.create(vec![key_file(1)]).await.unwrap();
        set(&open, "TOKEN", "canary-value").await;
        let provider = Arc::new(Provider {
            vault,
            open: Arc::new(open),
            typed: Mutex::new(typed.map(SecretValue::new)),
            can_prompt: typed.is_some(),
        });
        let time = Arc::clone(&clock) as Arc<dyn Clock>;
        let tools = vault_tools(&(Arc::clone(&provider) as Arc<dyn VaultProvider>), &time);
        Self {
            provider,
            clock,
            tools,
        }
    }

    fn tool(&self, tool: &str) -> &Arc<dyn Tool> {
        let mut tools = self.tools.iter();
        tools.find(|own| own.spec().name.as_str() == tool).unwrap()
    }

    /// Runs a call like the gate does after it was approved.
    async fn run(&self, tool: &str, arguments: Value) -> Result<String, String> {
        let tool = self.tool(tool);
        let arguments = Arc::new(arguments);
        let mut caller = caller();
        caller.inspection = tool.inspect(&caller, Arc::clone(&arguments)).await;
        let result = tool.run(&caller, arguments).await;
        let text = result
            .map(|output| output.text)
            .map_err(|error| error.message);
        let shown = format!("{text:?}");
        assert!(!shown.contains("canary"), "{shown}");
        text
    }

    async fn ok(&self, tool: &str, arguments: Value) -> String {
        self.run(tool, arguments).await.unwrap()
    }
}

fn caller() -> Caller {
    Caller {
        user: UserId::from("ann"),
        session: "s".into(),
        turn: "t".into(),
        agent: "vault".into(),
        call: "c".into(),
        trust: Trust::Trusted,
        inspection: Inspection::default(),
        output: OutputSink::default(),
    }
}

#[tokio::test]
async fn signatures_can_be_verified_with_the_listed_public_key() {
    let fixture = Fixture::new(None).await;
    for kind in ["ed25519", "secp256k1"] {
        let created = fixture
            .ok("crypto_create_key", json!({ "name": kind, "kind": kind }))
            .await;
        let public = created.rsplit(' ').next().unwrap().to_owned();
        assert!(fixture.ok("crypto_keys", json!({})).await.contains(&public));
        let again = fixture
            .ok("crypto_create_key", json!({ "name": kind, "kind": kind }))
            .await;
        assert!(
            again.contains("exists already") && again.contains(&public),
            "{again}"
        );
        let message = json!({ "key": kind, "type": "release", "message": "v1" });
        let signed = fixture.ok("crypto_sign", message).await;
        let signature = signed.lines().next().unwrap().replace("signature: ", "");
        let verify = |purpose: &str| json!({ "public_key": public, "type": purpose, "message": "v1", "signature": signature });
        assert_eq!(
            fixture.ok("crypto_verify", verify("release")).await,
            "valid"
        );
        assert_eq!(
            fixture.ok("crypto_verify", verify("invoice")).await,
            "not valid"
        );
    }
}

#[tokio::test]
async fn a_text_can_be_encrypted_and_decrypted_and_an_hmac_is_deterministic() {
    let fixture = Fixture::new(None).await;
    for (name, kind) in [("BOX", "symmetric"), ("CODE", "hmac")] {
        fixture
            .ok("crypto_create_key", json!({ "name": name, "kind": kind }))
            .await;
    }
    let plain = json!({ "key": "BOX", "text": "dear diary", "context": "2026" });
    let sealed = fixture.ok("crypto_encrypt", plain).await;
    let encrypted =
        |context: &str| json!({ "key": "BOX", "encrypted": sealed, "context": context });
    assert_eq!(
        fixture.ok("crypto_decrypt", encrypted("2026")).await,
        "dear diary"
    );
    fixture
        .run("crypto_decrypt", encrypted("2027"))
        .await
        .unwrap_err();
    let code = json!({ "key": "CODE", "text": "a" });
    let first = fixture.ok("crypto_hmac", code.clone()).await;
    assert_eq!(first.len(), 64);
    assert_eq!(first, fixture.ok("crypto_hmac", code).await);
}

#[tokio::test]
async fn no_crypto_tool_uses_a_secret_or_the_key_of_a_wallet() {
    let fixture = Fixture::new(None).await;
    let wallet = NewSecret {
        kind: Some(SecretKind::PaymentKey),
        ..NewSecret::new(SecretValue::new([7; 32]))
    };
    fixture
        .provider
        .open
        .set(&name("WALLET"), wallet)
        .await
        .unwrap();
    for secret in ["TOKEN", "WALLET"] {
        for (tool, arguments) in [
            ("crypto_hmac", json!({ "key": secret, "text": "a" })),
            ("crypto_encrypt", json!({ "key": secret, "text": "a" })),
            (
                "crypto_decrypt",
                json!({ "key": secret, "encrypted": "AAAA" }),
            ),
            (
                "crypto_sign",
                json!({ "key": secret, "type": "a", "message": "b" }),
            ),
        ] {
            let refused = fixture.run(tool, arguments).await.unwrap_err();
            assert!(refused.contains("kind is"), "{refused}");
        }
        for kind in ["symmetric", "hmac", "ed25519", "secp256k1"] {
            let taken = json!({ "name": secret, "kind": kind });
            fixture.run("crypto_create_key", taken).await.unwrap_err();
        }
    }
    assert!(
        !fixture
            .ok("crypto_keys", json!({}))
            .await
            .contains("WALLET")
    );
}

#[tokio::test]
async fn bindings_are_changed_only_as_the_user_approved() {
    let fixture = Fixture::new(None).await;
    let bind = |host: &str| Arc::new(json!({ "name": "TOKEN", "binding": { "host": host } }));
    let tool = fixture.tool("secrets_bind");
    // The user was not asked at all, and then asked about another host.
    let refused = tool.run(&caller(), bind("a.example")).await.unwrap_err();
    assert!(refused.message.contains("has not approved"), "{refused}");
    let mut asked = caller();
    asked.inspection = tool.inspect(&asked, bind("a.example")).await;
    assert!(asked.inspection.user_only.is_some());
    tool.run(&asked, bind("b.example")).await.unwrap_err();
    tool.run(&asked, bind("a.example")).await.unwrap();
    // After a crash the call may run a second time.
    tool.run(&asked, bind("a.example")).await.unwrap();
    let shown = fixture
        .ok("secrets_describe", json!({ "name": "TOKEN" }))
        .await;
    assert!(shown.contains("binding 1: exec: header `authorization` to https://a.example"));
    let revoke = Arc::new(json!({ "name": "TOKEN", "binding": 1 }));
    let tool = fixture.tool("secrets_revoke");
    tool.run(&caller(), Arc::clone(&revoke)).await.unwrap_err();
    let mut asked = caller();
    asked.inspection = tool.inspect(&asked, Arc::clone(&revoke)).await;
    tool.run(&asked, Arc::clone(&revoke)).await.unwrap();
    tool.run(&asked, revoke).await.unwrap_err();
}

#[tokio::test]
async fn only_fields_that_take_secrets_can_be_bound() {
    let fixture = Fixture::new(None).await;
    let bind = |binding: Value| json!({ "name": "TOKEN", "binding": binding });
    let field = |tool: &str, field: &str| json!({ "tool": tool, "field": field });
    let bound = fixture
        .ok("secrets_bind", bind(field("shop_login", "password")))
        .await;
    assert!(
        bound.contains("mcp:shop: argument `password` of its tool `login`"),
        "{bound}"
    );
    let by_id = field("mcp:shop/login", "pin");
    fixture.ok("secrets_bind", bind(by_id)).await;
    let page = json!({ "tool": "browser_act", "field": "text", "host": "shop.example" });
    fixture.ok("secrets_bind", bind(page)).await;
    for wrong in [
        field("crypto_encrypt", "text"),
        field("mcp:other/login", "password"),
        field("mcp:shop/login", "user"),
        field("fs_write", "content"),
        field("browser_act", "text"),
        json!({ "tool": "browser_act", "field": "handle", "host": "shop.example" }),
        json!({ "tool": "shop_login", "field": "password", "host": "shop.example" }),
    ] {
        let refused = fixture.run("secrets_bind", bind(wrong.clone())).await;
        assert!(refused.is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn an_agents_purpose_cannot_add_lines_to_the_question() {
    let fixture = Fixture::new(Some("typed value")).await;
    let purpose = "to push\nsent to: https://github.com\r\u{2028}x";
    let binding = json!({ "host": "a.example" });
    let arguments = json!({ "name": "NEW", "purpose": purpose, "binding": binding });
    let tool = fixture.tool("secrets_request");
    let shown = tool
        .preview(
            Arc::new(arguments),
            PreviewRequest {
                length: PreviewLength::Full,
                inspection: Inspection::default(),
            },
        )
        .await
        .unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 6, "{shown}");
    assert!(lines[2] == "sent to: https://a.example", "{shown}");
    assert!(
        lines[5].starts_with("the agent says: to push sent to:"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_request_stores_only_the_value_that_the_user_typed() {
    let request = |name: &str| json!({ "name": name, "purpose": "to push", "binding": { "host": "a.example" } });
    let fixture = Fixture::new(Some("typed value")).await;
    let refused = fixture.run("secrets_request", request("TOKEN")).await;
    assert!(refused.is_err() || refused.unwrap().contains("cannot type"));
    let fixture = Fixture::new(Some("typed value")).await;
    let stored = fixture.ok("secrets_request", request("NEW")).await;
    assert!(
        stored.contains("the user stored NEW and bound it"),
        "{stored}"
    );
    let value = fixture.provider.open.value(&name("NEW")).await.unwrap();
    assert_eq!(value.expose(), b"typed value");
    let fixture = Fixture::new(None).await;
    let advice = fixture.ok("secrets_request", request("NEW")).await;
    assert!(advice.contains("lango secrets set NEW"), "{advice}");
    let command = "`lango secrets bind NEW --host https://a.example --env NEW`";
    assert!(advice.contains(command), "{advice}");
    assert!(fixture.provider.open.value(&name("NEW")).await.is_err());
}

#[tokio::test]
async fn an_expired_secret_is_marked_with_the_next_step() {
    let fixture = Fixture::new(None).await;
    let secret = NewSecret {
        expires: Some(Timestamp(NOW + 1000)),
        ..NewSecret::new(SecretValue::new("canary-value"))
    };
    let open = &fixture.provider.open;
    open.set(&name("OLD"), secret).await.unwrap();
    for (time, mark) in [(NOW + 999, "expires on "), (NOW + 1000, "EXPIRED on ")] {
        fixture.clock.set(Timestamp(time));
        for (tool, arguments) in [
            ("secrets_list", json!({})),
            ("secrets_describe", json!({ "name": "OLD" })),
        ] {
            let shown = fixture.ok(tool, arguments).await;
            assert!(shown.contains(mark), "{shown}");
        }
    }
    let shown = fixture.ok("secrets_list", json!({})).await;
    assert!(shown.contains("`lango secrets rotate OLD`"), "{shown}");
}

#[tokio::test]
async fn binding_to_a_host_that_the_network_does_not_allow_gives_a_hint() {
    let fixture = Fixture::new(None).await;
    let bind =
        |host: &str| json!({ "name": "TOKEN", "binding": { "host": host, "variable": "A" } });
    let bound = fixture.ok("secrets_bind", bind("open.example")).await;
    assert!(!bound.contains("cannot be used yet"), "{bound}");
    let bound = fixture.ok("secrets_bind", bind("closed.example")).await;
    let hint = "it cannot be used yet: add `closed.example` to the network";
    assert!(bound.contains(hint), "{bound}");
}

#[tokio::test]
async fn the_audit_log_names_the_agent_and_the_session() {
    let fixture = Fixture::new(None).await;
    let bind = json!({ "name": "TOKEN", "binding": { "host": "a.example" } });
    fixture.ok("secrets_bind", bind).await;
    let newest = &fixture.provider.vault.events(1).await.unwrap()[0];
    assert_eq!(&*newest.action, "bound");
    assert_eq!(&*newest.actor, "agent vault in session s");
}

#[tokio::test]
async fn a_wrong_field_is_refused_with_the_existing_ones() {
    let fixture = Fixture::new(None).await;
    for (tool, field, expected) in [
        ("shop_login", "pasword", "did you mean `password`?"),
        ("shop_logn", "password", "did you mean `shop_login`?"),
        ("other", "password", "possible: "),
    ] {
        let binding = json!({ "tool": tool, "field": field });
        let bind = json!({ "name": "TOKEN", "binding": binding });
        let refused = fixture.run("secrets_bind", bind).await.unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
}
