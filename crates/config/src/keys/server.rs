//! The keys under `server`. A project may not set them: it could open the machine to others.

use super::{Key, UntrustedPolicy};

pub(super) const HOST: Key = Key {
    name: "server.host",
    help: "the address that `lango serve` listens on",
    field: |settings, _| &mut settings.server.host,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const PORT: Key = Key {
    name: "server.port",
    help: "the port that `lango serve` listens on; 0 picks a free one",
    field: |settings, _| &mut settings.server.port,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const HOSTS: Key = Key {
    name: "server.hosts",
    help: "names besides 127.0.0.1 and localhost under which the server answers",
    field: |settings, _| &mut settings.server.hosts,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const PUBLIC_URL: Key = Key {
    name: "server.publicUrl",
    help: "the server's address as callers see it, if it is behind a proxy",
    field: |settings, _| &mut settings.server.public_url,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const REQUIRE_TOKEN: Key = Key {
    name: "server.requireToken",
    help: "whether callers must send the server's token; `false` is only accepted on 127.0.0.1",
    field: |settings, _| &mut settings.server.require_token,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const USER: Key = Key {
    name: "server.user",
    help: "the user whose sessions, memory and knowledge callers work with",
    field: |settings, _| &mut settings.server.user,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const MAX_RUNNING_TASKS: Key = Key {
    name: "server.maxRunningTasks",
    help: "the most tasks of callers that run at the same time",
    field: |settings, _| &mut settings.server.max_running_tasks,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const QUEUE_LIMIT: Key = Key {
    name: "server.queueLimit",
    help: "the most tasks that may wait to run; further ones are refused with 429",
    field: |settings, _| &mut settings.server.queue_limit,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const QUEUE_TIMEOUT: Key = Key {
    name: "server.queueTimeout",
    help: "how long a task may wait to run before it is refused with 429",
    field: |settings, _| &mut settings.server.queue_timeout,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const MAX_STREAMS: Key = Key {
    name: "server.maxStreams",
    help: "the most streams open at the same time; further ones are refused with 429",
    field: |settings, _| &mut settings.server.max_streams,
    untrusted: UntrustedPolicy::Ignored,
};

pub(super) const MAX_CONNECTIONS: Key = Key {
    name: "server.maxConnections",
    help: "the most connections open at the same time; others wait to be accepted",
    field: |settings, _| &mut settings.server.max_connections,
    untrusted: UntrustedPolicy::Ignored,
};
