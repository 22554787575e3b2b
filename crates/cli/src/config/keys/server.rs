//! The keys under `server`. A project sets none of them: it would open the machine to others.

use super::{Key, Untrusted};

pub(super) const HOST: Key = Key {
    name: "server.host",
    help: "address that `lango serve` listens at",
    field: |settings, _| &mut settings.server.host,
    untrusted: Untrusted::Ignored,
};

pub(super) const PORT: Key = Key {
    name: "server.port",
    help: "port that `lango serve` listens at; 0 takes a free one",
    field: |settings, _| &mut settings.server.port,
    untrusted: Untrusted::Ignored,
};

pub(super) const HOSTS: Key = Key {
    name: "server.hosts",
    help: "names besides 127.0.0.1 and localhost under which the server answers",
    field: |settings, _| &mut settings.server.hosts,
    untrusted: Untrusted::Ignored,
};

pub(super) const PUBLIC_URL: Key = Key {
    name: "server.publicUrl",
    help: "where callers reach the server, if something stands in front of it",
    field: |settings, _| &mut settings.server.public_url,
    untrusted: Untrusted::Ignored,
};

pub(super) const REQUIRE_TOKEN: Key = Key {
    name: "server.requireToken",
    help: "callers have to send the server's token; false is only taken on 127.0.0.1",
    field: |settings, _| &mut settings.server.require_token,
    untrusted: Untrusted::Ignored,
};

pub(super) const USER: Key = Key {
    name: "server.user",
    help: "whose sessions, memory and knowledge callers work with",
    field: |settings, _| &mut settings.server.user,
    untrusted: Untrusted::Ignored,
};
