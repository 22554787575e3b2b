//! The table of keys, in the order in which they are shown.

use super::Key;

/// All keys.
pub static KEYS: &[Key] = &[
    Key {
        name: "agent.multiAgent",
        help: "delegate to sub-agents; false runs a single agent that holds all tools",
        field: |settings, _| &mut settings.agent.multi_agent,
    },
    Key {
        name: "agent.topology",
        help: "`specialists`, `classic`, or the name or path of a topology: a file, or a folder of agent files",
        field: |settings, _| &mut settings.agent.topology,
    },
    Key {
        name: "agent.orchestratorTools",
        help: "`none` or `all`: overrides what the topology lets the orchestrator call",
        field: |settings, _| &mut settings.agent.orchestrator_tools,
    },
    Key {
        name: "agent.model",
        help: "provider and model, such as `offline/rules`; chosen by itself when not set",
        field: |settings, _| &mut settings.agent.model,
    },
    Key {
        name: "agent.fallback",
        help: "models that are asked in this order when `agent.model` fails",
        field: |settings, _| &mut settings.agent.fallback,
    },
    Key {
        name: "agent.maxDelegationRounds",
        help: "delegation rounds of a turn; zero means the default of 3",
        field: |settings, _| &mut settings.agent.max_delegation_rounds,
    },
    Key {
        name: "agent.maxModelCalls",
        help: "model calls of a turn, over all its agents",
        field: |settings, _| &mut settings.agent.max_model_calls,
    },
    Key {
        name: "agent.maxToolCalls",
        help: "tool calls of a turn, over all its agents",
        field: |settings, _| &mut settings.agent.max_tool_calls,
    },
    Key {
        name: "agent.maxTokens",
        help: "tokens of a turn, sent and received; zero makes no call",
        field: |settings, _| &mut settings.agent.max_tokens,
    },
    Key {
        name: "agent.maxCost",
        help: "US dollars of a turn; zero makes no call",
        field: |settings, _| &mut settings.agent.max_cost,
    },
    Key {
        name: "agent.turnTimeout",
        help: "active time of a turn; waiting for a person does not count",
        field: |settings, _| &mut settings.agent.turn_timeout,
    },
    Key {
        name: "agent.idleTimeout",
        help: "how long a model may be silent, before its first word and between words",
        field: |settings, _| &mut settings.agent.idle_timeout,
    },
    Key {
        name: "agent.toolTimeout",
        help: "time of a single tool call or remote call",
        field: |settings, _| &mut settings.agent.tool_timeout,
    },
    Key {
        name: "agent.strictTools",
        help: "refuse to start when a tool has no agent to own it",
        field: |settings, _| &mut settings.agent.strict_tools,
    },
    Key {
        name: "agent.agentsDir",
        help: "your folder of agent files and topologies; `agents/` beside your file when not set",
        field: |settings, _| &mut settings.agent.agents_dir,
    },
    Key {
        name: "providers.<id>.kind",
        help: "how a provider is spoken to: `openai` (very many servers), `anthropic` or `gemini`",
        field: |settings, id| &mut settings.provider(id).kind,
    },
    Key {
        name: "providers.<id>.baseUrl",
        help: "where it is, such as `http://127.0.0.1:8000/v1`",
        field: |settings, id| &mut settings.provider(id).base_url,
    },
    Key {
        name: "providers.<id>.apiKeyEnv",
        help: "the environment variable that holds its key",
        field: |settings, id| &mut settings.provider(id).api_key_env,
    },
    Key {
        name: "providers.<id>.contextTokens",
        help: "how many tokens its models take at once",
        field: |settings, id| &mut settings.provider(id).context_tokens,
    },
    Key {
        name: "providers.<id>.stream",
        help: "whether its replies are streamed",
        field: |settings, id| &mut settings.provider(id).stream,
    },
    Key {
        name: "approval.rules",
        help: "which calls run, are asked for or never run: `[{ action, agent, tool, match }]`; of all layers",
        field: |settings, _| &mut settings.approval.rules,
    },
    Key {
        name: "tools.exec.read",
        help: "more files and folders that commands and file tools may read",
        field: |settings, _| &mut settings.tools.exec.read,
    },
    Key {
        name: "tools.exec.write",
        help: "more folders that commands and file tools may change",
        field: |settings, _| &mut settings.tools.exec.write,
    },
    Key {
        name: "tools.exec.network",
        help: "whether commands reach the network",
        field: |settings, _| &mut settings.tools.exec.network,
    },
    Key {
        name: "tools.exec.maxProcesses",
        help: "processes that a command may have at once",
        field: |settings, _| &mut settings.tools.exec.max_processes,
    },
    Key {
        name: "tools.exec.maxMemoryMb",
        help: "memory that a command may use, in MiB",
        field: |settings, _| &mut settings.tools.exec.max_memory_mb,
    },
    Key {
        name: "skill.dirs",
        help: "more folders with skills, beside your own and the project's",
        field: |settings, _| &mut settings.skill.dirs,
    },
    Key {
        name: "mcp.startTimeout",
        help: "how long an MCP server may take to answer when it is connected",
        field: |settings, _| &mut settings.mcp.start_timeout,
    },
    Key {
        name: "mcp.servers.<id>.command",
        help: "the program of an MCP server and its arguments; `{workspace}` gives it the workspace",
        field: |settings, id| &mut settings.server(id).command,
    },
    Key {
        name: "mcp.servers.<id>.data",
        help: "arguments that name data, not code: files that agents or the server may change",
        field: |settings, id| &mut settings.server(id).data,
    },
    Key {
        name: "mcp.servers.<id>.url",
        help: "the address of an MCP server that runs elsewhere, such as `https://example.com/mcp`",
        field: |settings, id| &mut settings.server(id).url,
    },
    Key {
        name: "mcp.servers.<id>.tokenEnv",
        help: "the environment variable that holds its bearer token",
        field: |settings, id| &mut settings.server(id).token_env,
    },
    Key {
        name: "mcp.servers.<id>.env",
        help: "variables of its program: `NAME` is passed on, `NAME=value` is set",
        field: |settings, id| &mut settings.server(id).env,
    },
    Key {
        name: "mcp.servers.<id>.network",
        help: "whether its program reaches the network",
        field: |settings, id| &mut settings.server(id).network,
    },
    Key {
        name: "mcp.servers.<id>.read",
        help: "more files and folders that its program may read",
        field: |settings, id| &mut settings.server(id).read,
    },
    Key {
        name: "mcp.servers.<id>.write",
        help: "more folders that its program may change",
        field: |settings, id| &mut settings.server(id).write,
    },
    Key {
        name: "mcp.servers.<id>.agent",
        help: "the agent that is given its tools; without it their prefix decides",
        field: |settings, id| &mut settings.server(id).agent,
    },
    Key {
        name: "mcp.servers.<id>.capability",
        help: "what that agent can do with its tools, as the orchestrator is told; its own title if not set",
        field: |settings, id| &mut settings.server(id).capability,
    },
    Key {
        name: "mcp.servers.<id>.prefix",
        help: "what the names of its tools begin with; `<id>_` if not set",
        field: |settings, id| &mut settings.server(id).prefix,
    },
    Key {
        name: "mcp.servers.<id>.tools",
        help: "the tools that are wanted, by the server's own names; all if empty",
        field: |settings, id| &mut settings.server(id).tools,
    },
    Key {
        name: "mcp.servers.<id>.formDefaults",
        help: "whether its forms are answered with its own defaults",
        field: |settings, id| &mut settings.server(id).form_defaults,
    },
    Key {
        name: "mcp.servers.<id>.clientId",
        help: "who lango was registered as for `lango mcp login`; it registers by itself if not set",
        field: |settings, id| &mut settings.server(id).client_id,
    },
    Key {
        name: "mcp.servers.<id>.clientSecretEnv",
        help: "the environment variable that holds the secret of that client",
        field: |settings, id| &mut settings.server(id).client_secret_env,
    },
    Key {
        name: "graph.enabled",
        help: "whether the librarian has a graph of facts",
        field: |settings, _| &mut settings.graph.enabled,
    },
    Key {
        name: "graph.maxDepth",
        help: "how many steps a walk through the graph may take",
        field: |settings, _| &mut settings.graph.max_depth,
    },
    Key {
        name: "graph.maxResults",
        help: "how many facts the graph gives at once",
        field: |settings, _| &mut settings.graph.max_results,
    },
    Key {
        name: "embedding.provider",
        help: "what makes vectors of texts: `offline` (spelling, not meaning), `none`, `model2vec`, `ollama`, or a provider",
        field: |settings, _| &mut settings.embedding.provider,
    },
    Key {
        name: "embedding.model",
        help: "the model of that provider; for `model2vec` its folder",
        field: |settings, _| &mut settings.embedding.model,
    },
    Key {
        name: "embedding.dimensions",
        help: "how many numbers a vector has, where the provider lets one choose",
        field: |settings, _| &mut settings.embedding.dimensions,
    },
    Key {
        name: "observationalMemory.enabled",
        help: "true: the model observes and condenses; false: no memory; not set: built-in rules observe, at no cost",
        field: |settings, _| &mut settings.memory.enabled,
    },
    Key {
        name: "observationalMemory.messageTokenThreshold",
        help: "tokens of turns that are observed together",
        field: |settings, _| &mut settings.memory.message_token_threshold,
    },
    Key {
        name: "observationalMemory.observationTokenThreshold",
        help: "tokens of observations that are condensed into reflections",
        field: |settings, _| &mut settings.memory.observation_token_threshold,
    },
    Key {
        name: "observationalMemory.reflectionTokenThreshold",
        help: "tokens of reflections that are condensed into longer-lived ones",
        field: |settings, _| &mut settings.memory.reflection_token_threshold,
    },
    Key {
        name: "observationalMemory.contextTokens",
        help: "tokens of memory that a turn is told at most",
        field: |settings, _| &mut settings.memory.context_tokens,
    },
    Key {
        name: "session.store",
        help: "where everything is kept: `sqlite:PATH`, or `postgres://user:password@host/database`",
        field: |settings, _| &mut settings.session.store,
    },
    Key {
        name: "session.user",
        help: "whose sessions, memory and knowledge are used here",
        field: |settings, _| &mut settings.session.user,
    },
    Key {
        name: "session.ttl",
        help: "how long sessions that are not used, and old tasks of callers, are kept, such as `90d`; for ever when not set",
        field: |settings, _| &mut settings.session.ttl,
    },
    Key {
        name: "session.whenBusy",
        help: "a question to a session that is busy with another turn: `wait` in line, or `refuse`",
        field: |settings, _| &mut settings.session.when_busy,
    },
    Key {
        name: "session.queueLimit",
        help: "how many questions may wait for a session; one more is refused",
        field: |settings, _| &mut settings.session.queue_limit,
    },
    Key {
        name: "session.lease",
        help: "with PostgreSQL: how long a session stays held by a copy of lango that is not heard of any more",
        field: |settings, _| &mut settings.session.lease,
    },
    Key {
        name: "a2a.enabled",
        help: "ask the agents in `a2a.remoteAgents`; false fetches nothing",
        field: |settings, _| &mut settings.a2a.enabled,
    },
    Key {
        name: "a2a.remoteAgents",
        help: "agents elsewhere: `[{ name, agentCardUrl, tokenEnv }]`",
        field: |settings, _| &mut settings.a2a.remote_agents,
    },
    Key {
        name: "server.host",
        help: "address that `lango serve` listens at",
        field: |settings, _| &mut settings.server.host,
    },
    Key {
        name: "server.port",
        help: "port that `lango serve` listens at; 0 takes a free one",
        field: |settings, _| &mut settings.server.port,
    },
    Key {
        name: "server.hosts",
        help: "names besides 127.0.0.1 and localhost under which the server answers",
        field: |settings, _| &mut settings.server.hosts,
    },
    Key {
        name: "server.publicUrl",
        help: "where callers reach the server, if something stands in front of it",
        field: |settings, _| &mut settings.server.public_url,
    },
    Key {
        name: "server.requireToken",
        help: "callers have to send the server's token; false is only taken on 127.0.0.1",
        field: |settings, _| &mut settings.server.require_token,
    },
    Key {
        name: "server.user",
        help: "whose sessions, memory and knowledge callers work with",
        field: |settings, _| &mut settings.server.user,
    },
];
