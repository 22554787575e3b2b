//! The precedence of layers, and the meaning of values.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lango_config::{
    BusySetting, KEYS, NetworkAccess, OrchestratorTools, Origin, ProcessEnv, StoreLocation,
    TopologyChoice,
};
use lango_core::{Limits, ModelSettings, ReasoningEffort};
use lango_engine::RuleAction;

use crate::{Fixture, origin_of};

#[test]
fn without_files_variables_or_flags_the_defaults_apply_and_nothing_is_created() {
    let fixture = Fixture::new();
    let loaded = fixture.load();
    let agent = &loaded.settings.agent;
    assert!(agent.multi_agent && !agent.strict_tools);
    assert_eq!(agent.topology, TopologyChoice::Named("specialists".into()));
    assert_eq!(
        (agent.orchestrator_tools, &agent.model, &agent.agents_dir),
        (None, &None, &None)
    );
    assert_eq!(agent.limits(), Limits::default());
    let database = fixture.path("home/.local/share/lango/lango.db");
    assert_eq!(
        loaded.settings.session.store,
        StoreLocation::Sqlite(database)
    );
    let mut values = loaded.values.iter();
    assert!(values.all(|value| value.origin == Origin::Default));
    assert_eq!(fs::read_dir(fixture.path("home")).unwrap().count(), 1);
}

#[test]
fn every_key_can_be_set_and_sets_its_own_field() {
    let fixture = Fixture::new().project_file(
        r#"
        [agent]
        maxDelegationRounds = 1
        maxModelCalls = 2
        maxToolCalls = 3
        turnTimeout = "4m"
        toolTimeout = "500ms"
        strictTools = true
        maxTokens = 5000
        maxCost = 0.25
        idleTimeout = "7s"
        [[approval.rules]]
        action = "deny"
        tool = "exec"
        "#,
    );
    let fixture = fixture.user_file(
        r#"
        payment = { rpcUrl = "https://rpc.example/key", network = "base", wallet = "secret:W", maxPerPayment = "1", maxPerDay = "2.5", maxPerRecipientPerDay = "3", maxPerPurposePerDay = "4", maxGasPerTransaction = "5 gwei", confirmationTimeout = "6s" }
        [agent]
        multiAgent = false
        topology = "classic"
        orchestratorTools = "all"
        model = "openai/gpt"
        findLocalModels = false
        fallback = ["a/b", "c/d"]
        temperature = 0.5
        reasoningEffort = "minimal"
        maxOutputTokens = 20
        agentsDir = "/agents"
        [providers.mine]
        kind = "anthropic"
        api = "chat"
        allowPlainHttp = true
        contextTokens = 9
        stream = false
        baseUrl = "http://127.0.0.1:1"
        apiKeyEnv = "MY_KEY"
        [approval]
        expiry = "23d"
        rules = [{ action = "allow", agent = "operator", match = "notes/*" }]
        [tools.exec]
        read = ["/data"]
        write = ["/out", "~/more"]
        network = true
        allowGitInit = true
        maxProcesses = 9
        maxMemoryMb = 10
        [egress]
        allow = ["10.0.0.5:8080"]
        deny = "*.evil.example, 10.0.0.0/8"
        maxRequests = 21
        maxBytes = 22
        [skill]
        dirs = "skills"
        [session]
        ttl = "19d"
        store = "sqlite:/other.db"
        user = "ann"
        whenBusy = "refuse"
        queueLimit = 17
        lease = "18s"
        [a2a]
        enabled = false
        remoteAgents = [{ name = "w", agentCardUrl = "http://127.0.0.1:2", tokenEnv = "W" }]
        [server]
        host = "127.0.0.2"
        port = 16
        hosts = ["lango.example"]
        publicUrl = "https://lango.example"
        requireToken = false
        user = "bob"
        maxRunningTasks = 31
        queueLimit = 32
        queueTimeout = "33s"
        maxStreams = 34
        maxConnections = 35
        [mcp]
        startTimeout = "3s"
        [mcp.servers.git]
        command = ["server", ""]
        url = "https://a"
        tokenEnv = "TOKEN"
        clientId = "me"
        clientSecretEnv = "SECRET"
        env = ["A", "B=1=2"]
        network = true
        read = "/packages"
        write = ["~/out"]
        agent = "vault"
        capability = "version control"
        data = ["{workspace}/app.db"]
        prefix = ""
        tools = ["a", "b"]
        formDefaults = true
        [ui]
        plain = true
        [vault]
        keyFile = "/etc/lango/vault.key"
        [browser]
        enabled = true
        path = "/opt/chrome"
        idleTime = "90s"
        searchUrl = "https://find.example/{query}"
        [search]
        order = ["mine"]
        [search.providers.mine]
        kind = "kagi"
        url = "https://kagi.example"
        apiKeyEnv = "KAGI"
        [graph]
        enabled = false
        maxDepth = 2
        maxResults = 11
        [embedding]
        provider = "ollama"
        model = "nomic"
        dimensions = 64
        [observationalMemory]
        enabled = true
        messageTokenThreshold = 12
        observationTokenThreshold = 13
        reflectionTokenThreshold = 14
        contextTokens = 15
        "#,
    );
    let loaded = fixture.load();
    let agent = &loaded.settings.agent;
    assert!(!agent.multi_agent && !agent.find_local_models && agent.strict_tools);
    assert_eq!(agent.topology, TopologyChoice::Named("classic".into()));
    assert_eq!(agent.orchestrator_tools, Some(OrchestratorTools::All));
    assert_eq!(agent.model.as_deref(), Some("openai/gpt"));
    assert_eq!(agent.agents_dir.as_deref(), Some(Path::new("/agents")));
    assert_eq!(
        agent.limits(),
        Limits {
            rounds: 1,
            model_calls: 2,
            tool_calls: 3,
            tokens: Some(5000),
            cost_micros: Some(250_000),
            turn_ms: 240_000,
            tool_ms: 500
        }
    );
    assert_eq!(agent.fallback, ["a/b", "c/d"]);
    let expected = ModelSettings {
        temperature: Some(0.5),
        reasoning_effort: Some(ReasoningEffort::Minimal),
        max_output_tokens: Some(20),
    };
    assert_eq!(agent.model_settings(), expected);
    assert_eq!(agent.idle_timeout, Duration::from_secs(7));
    let provider = &loaded.settings.providers["mine"];
    assert_eq!(provider.kind, Some(lango_models::ProviderFamily::Anthropic));
    assert_eq!(provider.api, Some(lango_models::OpenAiApi::Chat));
    assert_eq!(provider.base_url.as_deref(), Some("http://127.0.0.1:1"));
    assert_eq!(provider.api_key_env.as_deref(), Some("MY_KEY"));
    assert_eq!(provider.context_tokens, Some(9));
    assert!(provider.allow_plain_http && !provider.stream);
    assert_eq!(
        loaded.settings.session.store,
        StoreLocation::Sqlite("/other.db".into())
    );
    let [allow, deny] = loaded.settings.approval.rules.rules.as_slice() else {
        panic!(
            "the rules of both files apply: {:?}",
            loaded.settings.approval
        );
    };
    assert_eq!(
        (allow.action, deny.action),
        (RuleAction::Allow, RuleAction::Deny)
    );
    assert_eq!(allow.agent.as_deref(), Some("operator"));
    assert_eq!(allow.matching.as_deref(), Some("notes/*"));
    assert_eq!(deny.tool.as_deref(), Some("exec"));
    let exec = &loaded.settings.tools.exec;
    assert_eq!(exec.read, [Path::new("/data")]);
    assert_eq!(
        exec.write,
        [PathBuf::from("/out"), fixture.path("home/more")]
    );
    assert_eq!(exec.network, NetworkAccess::Open);
    assert!(exec.allow_git_init);
    assert!((exec.max_processes, exec.max_memory_mb) == (9, 10));
    let egress = &loaded.settings.egress;
    assert_eq!(egress.allow.0, ["10.0.0.5:8080".parse().unwrap()]);
    let denied = ["*.evil.example", "10.0.0.0/8"].map(|text| text.parse().unwrap());
    assert_eq!(egress.deny, denied);
    assert_eq!((egress.max_requests, egress.max_bytes), (21, 22));
    let skills = fixture.path("home/.config/lango/skills");
    assert_eq!(loaded.settings.skill.dirs, [skills]);
    let mcp = &loaded.settings.mcp;
    assert_eq!(mcp.start_timeout, std::time::Duration::from_secs(3));
    let git = &mcp.servers["git"];
    assert_eq!(git.command.0, ["server", ""]);
    let texts = (&git.url, &git.token_env, &git.agent, &git.prefix.0);
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        texts,
        (
            &some("https://a"),
            &some("TOKEN"),
            &some("vault"),
            &some("")
        )
    );
    let client = (&git.client_id, &git.client_secret_env);
    assert_eq!(client, (&some("me"), &some("SECRET")));
    let variables = [("A".to_owned(), None), ("B".to_owned(), some("1=2"))];
    assert_eq!(git.env.0, variables);
    assert_eq!(git.network, NetworkAccess::Open);
    assert!(git.form_defaults);
    assert_eq!(git.read, [Path::new("/packages")]);
    assert_eq!(git.write, [fixture.path("home/out")]);
    assert_eq!(git.tools, ["a", "b"]);
    assert_eq!(git.data, ["{workspace}/app.db"]);
    assert_eq!(git.capability.0, some("version control"));
    assert!(loaded.settings.ui.plain);
    let key_file = loaded.settings.vault.key_file.as_deref();
    assert_eq!(key_file, Some(Path::new("/etc/lango/vault.key")));
    let payment = format!("{:?}", loaded.settings.payment);
    let expected = "PaymentSettings { rpc_url: RpcUrl(Some(\"https://rpc.example/…\")), network: Base, wallet: Some(\"secret:W\"), max_per_payment: Usdc(1000000), max_per_day: Usdc(2500000), max_per_recipient: Usdc(3000000), max_per_purpose: Usdc(4000000), max_gas: Wei(5000000000), confirmation_timeout: 6s }";
    assert_eq!(payment, expected);
    let browser = &loaded.settings.browser;
    assert_eq!(browser.enabled, lango_config::BrowserUse::Always);
    assert_eq!(browser.path.as_deref(), Some(Path::new("/opt/chrome")));
    assert_eq!(browser.idle_time.as_secs(), 90);
    let search_url = browser.search_url.as_deref();
    assert_eq!(search_url, Some("https://find.example/{query}"));
    let search = &loaded.settings.search;
    assert_eq!(search.order, ["mine"]);
    let service = &search.providers["mine"];
    assert_eq!(service.kind, Some(lango_web::ProviderKind::Kagi));
    assert_eq!(service.url.as_deref(), Some("https://kagi.example"));
    assert_eq!(service.api_key_env.as_deref(), Some("KAGI"));
    let graph = &loaded.settings.graph;
    assert!(!graph.enabled && (graph.max_depth, graph.max_results) == (2, 11));
    let embedding = &loaded.settings.embedding;
    assert_eq!(embedding.provider.as_deref(), Some("ollama"));
    assert_eq!(embedding.model.as_deref(), Some("nomic"));
    assert_eq!(embedding.dimensions, Some(64));
    let memory = &loaded.settings.memory;
    assert_eq!(memory.enabled, Some(true));
    let thresholds = (
        memory.message_token_threshold,
        memory.observation_token_threshold,
        memory.reflection_token_threshold,
        memory.context_tokens,
    );
    assert_eq!(thresholds, (12, 13, 14, 15));
    let session = &loaded.settings.session;
    assert_eq!(session.user, "ann");
    assert_eq!(
        (session.when_busy, session.queue_limit),
        (BusySetting::Refuse, 17)
    );
    assert_eq!(session.lease.0, Duration::from_secs(18));
    assert_eq!(session.ttl, Some(Duration::from_secs(19 * 86_400)));
    assert_eq!(loaded.settings.approval.expiry.as_secs(), 23 * 86_400);
    let [remote] = &loaded.settings.a2a.remote_agents.0[..] else {
        panic!("{:?}", loaded.settings.a2a);
    };
    assert!(!loaded.settings.a2a.enabled && remote.name == "w");
    assert_eq!(remote.agent_card_url, "http://127.0.0.1:2");
    assert_eq!(remote.token_env.as_deref(), Some("W"));
    let server = &loaded.settings.server;
    assert_eq!(server.host.as_deref(), Some("127.0.0.2"));
    assert_eq!((server.port, server.require_token), (16, false));
    assert_eq!(server.hosts, ["lango.example"]);
    assert_eq!(server.public_url.as_deref(), Some("https://lango.example"));
    assert_eq!(server.user, "bob");
    let limits = (server.max_running_tasks, server.queue_limit);
    assert_eq!(limits, (31, 32));
    assert_eq!(server.queue_timeout, Duration::from_secs(33));
    assert_eq!((server.max_streams, server.max_connections), (34, 35));
    assert_eq!(loaded.values.len(), KEYS.len());
    let mut values = loaded.values.iter();
    assert!(values.all(|value| value.origin != Origin::Default));
}

#[test]
fn zero_delegation_rounds_mean_three() {
    let loaded = Fixture::new().flag("agent.maxDelegationRounds=0").load();
    assert_eq!(loaded.settings.agent.limits().rounds, 3);
}

#[test]
fn each_layer_overrides_the_weaker_ones_and_is_named_as_the_origin() {
    let mut fixture = Fixture::new();
    let mut expect = |change: fn(Fixture) -> Fixture, calls: u32, origin: &str| {
        fixture = change(std::mem::replace(&mut fixture, Fixture::new()));
        let loaded = fixture.load();
        assert_eq!(loaded.settings.agent.max_tool_calls, calls);
        let found = origin_of(&loaded, "agent.maxToolCalls");
        assert_eq!(
            found.replace(fixture.root.path().to_str().unwrap(), ""),
            origin
        );
    };
    expect(|fixture| fixture, 50, "default");
    expect(
        |fixture| fixture.user_file("\nagent.maxToolCalls = 9\n"),
        9,
        "/home/.config/lango/lango.toml:2",
    );
    expect(
        |fixture| fixture.project_file("[agent]\n\nmaxToolCalls = 2\n"),
        2,
        "/home/project/lango.toml:3",
    );
    expect(
        |fixture| fixture.variable("LANGO_AGENT_MAX_TOOL_CALLS", "3"),
        3,
        "LANGO_AGENT_MAX_TOOL_CALLS",
    );
    expect(|fixture| fixture.flag("agent.maxToolCalls=4"), 4, "-c");
    expect(|fixture| fixture.flag("agent.maxToolCalls=5"), 5, "-c");
}

#[test]
fn underscores_and_case_of_a_variable_do_not_matter_and_an_empty_one_is_ignored() {
    let fixture = Fixture::new()
        .variable("LANGO_AGENT__MAXTOOLCALLS", "7")
        .variable("LANGO_agent_model", "a/b")
        .variable("LANGO_SESSION_STORE", "");
    let loaded = fixture.load();
    assert_eq!(loaded.settings.agent.max_tool_calls, 7);
    assert_eq!(loaded.settings.agent.model.as_deref(), Some("a/b"));
    assert_eq!(
        origin_of(&loaded, "agent.maxToolCalls"),
        "LANGO_AGENT__MAXTOOLCALLS"
    );
    assert_eq!(origin_of(&loaded, "session.store"), "default");
}

#[test]
fn a_flag_needs_no_quotes_but_may_have_them() {
    let fixture = Fixture::new()
        .flag("agent.model=offline/rules")
        .flag("agent.turnTimeout=30s")
        .flag("agent.toolTimeout = \"1h\"")
        .flag("agent.multiAgent=false")
        .flag("agent.maxModelCalls=0x10")
        .flag("agent.topology=true");
    let agent = fixture.load().settings.agent;
    assert_eq!(agent.model.as_deref(), Some("offline/rules"));
    assert_eq!(
        (agent.turn_timeout, agent.tool_timeout),
        (Duration::from_secs(30), Duration::from_secs(3600))
    );
    assert_eq!((agent.multi_agent, agent.max_model_calls), (false, 16));
    assert_eq!(agent.topology, TopologyChoice::Named("true".into()));
}

#[test]
fn a_flag_may_contain_an_equals_sign_in_its_value() {
    let loaded = Fixture::new().flag("agent.model=a=b").load();
    assert_eq!(loaded.settings.agent.model.as_deref(), Some("a=b"));
}

#[test]
fn the_environment_of_the_process_can_be_read() {
    let process_env = ProcessEnv::from_process(vec!["a=b".into()]).unwrap();
    assert!(process_env.cwd.is_absolute());
    assert_eq!(process_env.flags, ["a=b"]);
}
