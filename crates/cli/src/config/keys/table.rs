//! The table of keys, in the order in which they are shown.

use super::super::choices::WhenBusy;
use super::super::settings::milliseconds;
use super::{Key, Untrusted};

/// All keys.
pub static KEYS: &[Key] = &[
    Key {
        name: "agent.multiAgent",
        help: "delegate to sub-agents; false runs a single agent that holds all tools",
        field: |settings, _| &mut settings.agent.multi_agent,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "agent.topology",
        help: "`specialists`, `classic`, or the name or path of a topology: a file, or a folder of agent files",
        field: |settings, _| &mut settings.agent.topology,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "agent.orchestratorTools",
        help: "`none` or `all`: overrides what the topology lets the orchestrator call",
        field: |settings, _| &mut settings.agent.orchestrator_tools,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "agent.model",
        help: "provider and model, such as `offline/rules`; chosen by itself when not set",
        field: |settings, _| &mut settings.agent.model,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "agent.fallback",
        help: "models that are asked in this order when `agent.model` fails",
        field: |settings, _| &mut settings.agent.fallback,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "agent.temperature",
        help: "sampling temperature of every model that takes one, from 0 to 2",
        field: |settings, _| &mut settings.agent.temperature,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "agent.reasoningEffort",
        help: "how much models think: `none`, `minimal`, `low`, `medium` or `high`; their default when not set",
        field: |settings, _| &mut settings.agent.reasoning_effort,
        // Less thinking costs less, and makes an agent easier to mislead by the very files of the project.
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "agent.maxOutputTokens",
        help: "tokens of one reply, reasoning included; from 1 to 1000000",
        field: |settings, _| &mut settings.agent.max_output_tokens,
        untrusted: Untrusted::OnlyLower(|settings| {
            let most = settings.agent.model_settings().max_output_tokens;
            most.unwrap_or(u64::MAX)
        }),
    },
    Key {
        name: "agent.maxDelegationRounds",
        help: "delegation rounds of a turn; zero means the default of 3",
        field: |settings, _| &mut settings.agent.max_delegation_rounds,
        untrusted: Untrusted::OnlyLower(|settings| settings.agent.limits().rounds.into()),
    },
    Key {
        name: "agent.maxModelCalls",
        help: "model calls of a turn, over all its agents",
        field: |settings, _| &mut settings.agent.max_model_calls,
        untrusted: Untrusted::OnlyLower(|settings| settings.agent.max_model_calls.into()),
    },
    Key {
        name: "agent.maxToolCalls",
        help: "tool calls of a turn, over all its agents",
        field: |settings, _| &mut settings.agent.max_tool_calls,
        untrusted: Untrusted::OnlyLower(|settings| settings.agent.max_tool_calls.into()),
    },
    Key {
        name: "agent.maxTokens",
        help: "tokens of a turn, sent and received; zero makes no call",
        field: |settings, _| &mut settings.agent.max_tokens,
        untrusted: Untrusted::OnlyLower(|settings| settings.agent.max_tokens.unwrap_or(u64::MAX)),
    },
    Key {
        name: "agent.maxCost",
        help: "US dollars of a turn; zero makes no call",
        field: |settings, _| &mut settings.agent.max_cost,
        untrusted: Untrusted::OnlyLower(|settings| {
            settings.agent.limits().cost_micros.unwrap_or(u64::MAX)
        }),
    },
    Key {
        name: "agent.turnTimeout",
        help: "active time of a turn; waiting for a person does not count",
        field: |settings, _| &mut settings.agent.turn_timeout,
        untrusted: Untrusted::OnlyLower(|settings| settings.agent.limits().turn_ms),
    },
    Key {
        name: "agent.idleTimeout",
        help: "how long a model may be silent, before its first word and between words",
        field: |settings, _| &mut settings.agent.idle_timeout,
        untrusted: Untrusted::OnlyLower(|settings| milliseconds(settings.agent.idle_timeout)),
    },
    Key {
        name: "agent.toolTimeout",
        help: "time of a single tool call or remote call",
        field: |settings, _| &mut settings.agent.tool_timeout,
        untrusted: Untrusted::OnlyLower(|settings| settings.agent.limits().tool_ms),
    },
    Key {
        name: "agent.strictTools",
        help: "refuse to start when a tool has no agent to own it",
        field: |settings, _| &mut settings.agent.strict_tools,
        untrusted: Untrusted::OnlyLower(|settings| (!settings.agent.strict_tools).into()),
    },
    Key {
        name: "agent.agentsDir",
        help: "your folder of agent files and topologies; `agents/` beside your file when not set",
        field: |settings, _| &mut settings.agent.agents_dir,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "providers.<id>.kind",
        help: "how a provider is spoken to: `openai` (very many servers), `anthropic` or `gemini`",
        field: |settings, id| &mut settings.provider(id).kind,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "providers.<id>.api",
        help: "the API of a provider of the kind `openai`: `responses` or `chat`; by its address when not set",
        field: |settings, id| &mut settings.provider(id).api,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "providers.<id>.baseUrl",
        help: "where it is, such as `http://127.0.0.1:8000/v1`",
        field: |settings, id| &mut settings.provider(id).base_url,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "providers.<id>.apiKeyEnv",
        help: "the environment variable that holds its key",
        field: |settings, id| &mut settings.provider(id).api_key_env,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "providers.<id>.contextTokens",
        help: "how many tokens its models take at once",
        field: |settings, id| &mut settings.provider(id).context_tokens,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "providers.<id>.stream",
        help: "whether its replies are streamed",
        field: |settings, id| &mut settings.provider(id).stream,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "approval.rules",
        help: "which calls run, are asked for or never run: `[{ action, agent, tool, match }]`; of all layers",
        field: |settings, _| &mut settings.approval.rules,
        untrusted: Untrusted::Filtered,
    },
    Key {
        name: "tools.exec.read",
        help: "more files and folders that commands and file tools may read",
        field: |settings, _| &mut settings.tools.exec.read,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "tools.exec.write",
        help: "more folders that commands and file tools may change",
        field: |settings, _| &mut settings.tools.exec.write,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "tools.exec.network",
        help: "whether commands reach the network",
        field: |settings, _| &mut settings.tools.exec.network,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "tools.exec.allowGitInit",
        help: "permits commands to create git repositories (git init, git clone) in the workspace",
        field: |settings, _| &mut settings.tools.exec.allow_git_init,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "tools.exec.maxProcesses",
        help: "processes that a command may have at once",
        field: |settings, _| &mut settings.tools.exec.max_processes,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "tools.exec.maxMemoryMb",
        help: "memory that a command may use, in MiB",
        field: |settings, _| &mut settings.tools.exec.max_memory_mb,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "skill.dirs",
        help: "more folders with skills, beside your own and the project's",
        field: |settings, _| &mut settings.skill.dirs,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.startTimeout",
        help: "how long an MCP server may take to answer when it is connected",
        field: |settings, _| &mut settings.mcp.start_timeout,
        untrusted: Untrusted::OnlyLower(|settings| milliseconds(settings.mcp.start_timeout)),
    },
    Key {
        name: "mcp.servers.<id>.command",
        help: "the program of an MCP server and its arguments; `{workspace}` gives it the workspace",
        field: |settings, id| &mut settings.server(id).command,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.data",
        help: "arguments that name data, not code: files that agents or the server may change",
        field: |settings, id| &mut settings.server(id).data,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.url",
        help: "the address of an MCP server that runs elsewhere, such as `https://example.com/mcp`",
        field: |settings, id| &mut settings.server(id).url,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.tokenEnv",
        help: "the environment variable that holds its bearer token",
        field: |settings, id| &mut settings.server(id).token_env,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.env",
        help: "variables of its program: `NAME` is passed on, `NAME=value` is set",
        field: |settings, id| &mut settings.server(id).env,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.network",
        help: "whether its program reaches the network",
        field: |settings, id| &mut settings.server(id).network,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.read",
        help: "more files and folders that its program may read",
        field: |settings, id| &mut settings.server(id).read,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.write",
        help: "more folders that its program may change",
        field: |settings, id| &mut settings.server(id).write,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.agent",
        help: "the agent that is given its tools; without it their prefix decides",
        field: |settings, id| &mut settings.server(id).agent,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.capability",
        help: "what that agent can do with its tools, as the orchestrator is told; its own title if not set",
        field: |settings, id| &mut settings.server(id).capability,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.prefix",
        help: "what the names of its tools begin with; `<id>_` if not set",
        field: |settings, id| &mut settings.server(id).prefix,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.tools",
        help: "the tools that are wanted, by the server's own names; all if empty",
        field: |settings, id| &mut settings.server(id).tools,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.formDefaults",
        help: "whether its forms are answered with its own defaults",
        field: |settings, id| &mut settings.server(id).form_defaults,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.clientId",
        help: "who lango was registered as for `lango mcp login`; it registers by itself if not set",
        field: |settings, id| &mut settings.server(id).client_id,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "mcp.servers.<id>.clientSecretEnv",
        help: "the environment variable that holds the secret of that client",
        field: |settings, id| &mut settings.server(id).client_secret_env,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "graph.enabled",
        help: "whether the librarian has a graph of facts",
        field: |settings, _| &mut settings.graph.enabled,
        untrusted: Untrusted::OnlyLower(|settings| settings.graph.enabled.into()),
    },
    Key {
        name: "graph.maxDepth",
        help: "how many steps a walk through the graph may take",
        field: |settings, _| &mut settings.graph.max_depth,
        untrusted: Untrusted::OnlyLower(|settings| settings.graph.max_depth.into()),
    },
    Key {
        name: "graph.maxResults",
        help: "how many facts the graph gives at once",
        field: |settings, _| &mut settings.graph.max_results,
        untrusted: Untrusted::OnlyLower(|settings| settings.graph.max_results.into()),
    },
    Key {
        name: "embedding.provider",
        help: "what makes vectors of texts: `offline` (spelling, not meaning), `none`, `model2vec`, `ollama`, or a provider",
        field: |settings, _| &mut settings.embedding.provider,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "embedding.model",
        help: "the model of that provider; for `model2vec` its folder",
        field: |settings, _| &mut settings.embedding.model,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "embedding.dimensions",
        help: "how many numbers a vector has, where the provider lets one choose",
        field: |settings, _| &mut settings.embedding.dimensions,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "observationalMemory.enabled",
        help: "true: the model observes and condenses; false: no memory; not set: built-in rules observe, at no cost",
        field: |settings, _| &mut settings.memory.enabled,
        untrusted: Untrusted::OnlyLower(|settings| match settings.memory.enabled {
            Some(false) => 0,
            None => 1,
            Some(true) => 2,
        }),
    },
    Key {
        name: "observationalMemory.messageTokenThreshold",
        help: "tokens of turns that are observed together",
        field: |settings, _| &mut settings.memory.message_token_threshold,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "observationalMemory.observationTokenThreshold",
        help: "tokens of observations that are condensed into reflections",
        field: |settings, _| &mut settings.memory.observation_token_threshold,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "observationalMemory.reflectionTokenThreshold",
        help: "tokens of reflections that are condensed into longer-lived ones",
        field: |settings, _| &mut settings.memory.reflection_token_threshold,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "observationalMemory.contextTokens",
        help: "tokens of memory that a turn is told at most",
        field: |settings, _| &mut settings.memory.context_tokens,
        untrusted: Untrusted::OnlyLower(|settings| settings.memory.context_tokens.into()),
    },
    Key {
        name: "session.store",
        help: "where everything is kept: `sqlite:PATH`, or `postgres://user:password@host/database`",
        field: |settings, _| &mut settings.session.store,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "session.user",
        help: "whose sessions, memory and knowledge are used here",
        field: |settings, _| &mut settings.session.user,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "session.ttl",
        help: "how long sessions that are not used, and old tasks of callers, are kept, such as `90d`; for ever when not set",
        field: |settings, _| &mut settings.session.ttl,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "session.whenBusy",
        help: "a question to a session that is busy with another turn: `wait` in line, or `refuse`",
        field: |settings, _| &mut settings.session.when_busy,
        untrusted: Untrusted::OnlyLower(|settings| {
            (settings.session.when_busy == WhenBusy::Wait).into()
        }),
    },
    Key {
        name: "session.queueLimit",
        help: "how many questions may wait for a session; one more is refused",
        field: |settings, _| &mut settings.session.queue_limit,
        untrusted: Untrusted::OnlyLower(|settings| settings.session.queue_limit.into()),
    },
    Key {
        name: "session.lease",
        help: "with PostgreSQL: how long a session stays held by a copy of lango that is not heard of any more",
        field: |settings, _| &mut settings.session.lease,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "a2a.enabled",
        help: "ask the agents in `a2a.remoteAgents`; false fetches nothing",
        field: |settings, _| &mut settings.a2a.enabled,
        untrusted: Untrusted::OnlyLower(|settings| settings.a2a.enabled.into()),
    },
    Key {
        name: "a2a.remoteAgents",
        help: "agents elsewhere: `[{ name, agentCardUrl, tokenEnv }]`",
        field: |settings, _| &mut settings.a2a.remote_agents,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "server.host",
        help: "address that `lango serve` listens at",
        field: |settings, _| &mut settings.server.host,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "server.port",
        help: "port that `lango serve` listens at; 0 takes a free one",
        field: |settings, _| &mut settings.server.port,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "server.hosts",
        help: "names besides 127.0.0.1 and localhost under which the server answers",
        field: |settings, _| &mut settings.server.hosts,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "server.publicUrl",
        help: "where callers reach the server, if something stands in front of it",
        field: |settings, _| &mut settings.server.public_url,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "server.requireToken",
        help: "callers have to send the server's token; false is only taken on 127.0.0.1",
        field: |settings, _| &mut settings.server.require_token,
        untrusted: Untrusted::Ignored,
    },
    Key {
        name: "server.user",
        help: "whose sessions, memory and knowledge callers work with",
        field: |settings, _| &mut settings.server.user,
        untrusted: Untrusted::Ignored,
    },
];
