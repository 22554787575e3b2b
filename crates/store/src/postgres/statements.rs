//! The statements that only PostgreSQL has: on new connections, on the leases of sessions and on the queues for them. All times are
//! by the database's clock. The tables have older names: `holds` has the leases, `hold_line` the tickets, and `holder` is a replica.

use super::database::answer_limit;
use crate::engine::Sql;
use std::time::Duration;
use tokio_postgres::{Client, Error};

/// Configures a new connection: timeouts, and commits that wait for the disk even if the server is configured not to. The idle
/// timeout releases the row locks of a stopped replica well before its leases expire.
pub(super) async fn set_up(client: &Client, lease: Duration) -> Result<(), Error> {
    let idle = answer_limit(lease).as_millis();
    let settings = format!(
        "SET statement_timeout = '30s';
         SET idle_in_transaction_session_timeout = '{idle}ms';
         SET jit = off;
         SELECT set_config('synchronous_commit', 'on', false)
          WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    );
    client.batch_execute(&settings).await
}

/// Waits until no other replica migrates the schema. The lock lasts until the end of the transaction.
pub(super) const LOCK_MIGRATIONS: &str = "SET LOCAL statement_timeout = '10min';
     SELECT pg_advisory_xact_lock(hashtextextended('lango ' || current_setting('search_path'), 0))";

/// Acquires the lease of a session (`$1`) for a replica (`$2`) for so many seconds (`$3`), if no other replica has it and no
/// waiter of another replica came before. A replica that has it already, perhaps without knowing, gets it with a new fence. A
/// replica orders its own waiters, so its place is that of its first ticket. Released tickets (`$4`) do not count, and the
/// waiter's ticket (`$5`) is deleted. Returns the fence, if it acquired it, and whether the waiter had a ticket.
///
/// It locks the lease only if it seems free, so that waiters can try often.
pub(super) const CLAIM: Sql = Sql::only_postgres(
    "WITH claimed AS (
        INSERT INTO holds (session, holder, fence, until, seconds)
        SELECT $1, $2, nextval('hold_fences'), clock_timestamp() + make_interval(secs => $3), $3
         WHERE NOT EXISTS (SELECT FROM holds WHERE session = $1 AND holder <> $2 AND until > clock_timestamp())
           AND NOT EXISTS (SELECT FROM hold_line
                            WHERE session = $1 AND holder <> $2 AND until > clock_timestamp()
                              AND ticket < coalesce((SELECT min(ticket) FROM hold_line
                                                      WHERE session = $1 AND holder = $2
                                                        AND ticket <> ALL ($4::bigint[])),
                                                    9223372036854775807))
            ON CONFLICT (session) DO UPDATE
           SET holder = excluded.holder, fence = nextval('hold_fences'), seconds = excluded.seconds,
               until = clock_timestamp() + make_interval(secs => $3)
         WHERE holds.until <= clock_timestamp() OR holds.holder = excluded.holder
        RETURNING fence),
     deleted AS (
        DELETE FROM hold_line
         WHERE ticket = ANY ($4::bigint[]) OR ticket = $5 AND EXISTS (SELECT FROM claimed))
     SELECT (SELECT fence FROM claimed), EXISTS (SELECT FROM hold_line WHERE ticket = $5)",
);

/// Joins the queue of a session (`$1`), if it has fewer than `$5` waiters. Returns the ticket and the number of waiters before.
///
/// It locks no row that others need, and none for longer than the statement: a replica that stops in the middle must not block
/// the leases of others. Hence replicas that join at the same moment do not see each other, and the queue may become longer.
pub(super) const JOIN_QUEUE: Sql = Sql::only_postgres(
    "WITH queue AS MATERIALIZED (
        SELECT count(*) AS waiting FROM hold_line
         WHERE session = $1 AND until > clock_timestamp() AND ticket <> ALL ($4::bigint[])),
     left_over AS (
        DELETE FROM hold_line
         WHERE session = $1 AND (until <= clock_timestamp() OR ticket = ANY ($4::bigint[]))),
     joined AS (
        INSERT INTO hold_line (session, holder, until)
        SELECT $1, $2, clock_timestamp() + make_interval(secs => $3) FROM queue WHERE waiting < $5
        RETURNING ticket)
     SELECT (SELECT ticket FROM joined), waiting FROM queue",
);

/// Renews leases (`$1` and their fences `$2`) and tickets (`$4`), except for locked rows, which must not block the others.
/// Returns the fences of the leases that this replica still has, and whether they were renewed.
pub(super) const RENEW: &str = "WITH free AS MATERIALIZED (
        SELECT session FROM holds
         WHERE session = ANY ($1::text[]) AND fence = ANY ($2::bigint[]) AND until > clock_timestamp()
           FOR NO KEY UPDATE SKIP LOCKED),
     renewed AS (
        UPDATE holds SET until = clock_timestamp() + make_interval(secs => $3)
         WHERE session = ANY (ARRAY(SELECT session FROM free)) AND fence = ANY ($2::bigint[])
           AND until > clock_timestamp()
        RETURNING fence),
     free_tickets AS MATERIALIZED (
        SELECT ticket FROM hold_line WHERE ticket = ANY ($4::bigint[]) FOR NO KEY UPDATE SKIP LOCKED),
     waiting AS (
        UPDATE hold_line SET until = clock_timestamp() + make_interval(secs => $3)
         WHERE ticket = ANY (ARRAY(SELECT ticket FROM free_tickets)))
     SELECT fence, EXISTS (SELECT FROM renewed WHERE renewed.fence = holds.fence) FROM holds
      WHERE session = ANY ($1::text[]) AND fence = ANY ($2::bigint[])
        AND (until > clock_timestamp() OR EXISTS (SELECT FROM renewed WHERE renewed.fence = holds.fence))";

/// Renews one lease (`$1` and its fence `$2`), and waits for a lock on its row for as long as `$4` says. Returns its fence, if
/// this replica still has it.
pub(super) const RENEW_ALONE: &str = "WITH lock_timeout AS MATERIALIZED (
        SELECT set_config('lock_timeout', $4, true))
     UPDATE holds SET until = clock_timestamp() + make_interval(secs => $3)
      WHERE session = $1 AND fence = $2 AND until > clock_timestamp()
        AND (SELECT count(*) FROM lock_timeout) > 0
     RETURNING fence";

/// Returns the database's clock in seconds.
pub(super) const CLOCK: &str = "SELECT extract(epoch FROM clock_timestamp())::double precision";

/// Shortens leases and tickets that end later than their length (`$1` for tickets) allows, because the clock was set back, to
/// that length from now. A live owner renews its lease in time; the lease of a dead one expires. Locked rows are skipped, so run
/// it more than once.
pub(super) const SHORTEN: &str = "WITH late AS MATERIALIZED (
        SELECT session FROM holds WHERE until > clock_timestamp() + make_interval(secs => seconds)
           FOR NO KEY UPDATE SKIP LOCKED),
     shortened AS (
        UPDATE holds SET until = clock_timestamp() + make_interval(secs => seconds)
         WHERE session = ANY (ARRAY(SELECT session FROM late))),
     late_tickets AS MATERIALIZED (
        SELECT ticket FROM hold_line WHERE until > clock_timestamp() + make_interval(secs => $1)
           FOR NO KEY UPDATE SKIP LOCKED)
     UPDATE hold_line SET until = clock_timestamp() + make_interval(secs => $1)
      WHERE ticket = ANY (ARRAY(SELECT ticket FROM late_tickets))";

/// Takes the advisory lock that every connected server has on its schema, in shared mode. Returns whether it could: a new schema
/// may not exist yet.
pub(super) const ATTACH_SERVER: &str = "SELECT current_schema() IS NOT NULL,
            pg_advisory_lock_shared(hashtext('lango server ' || current_schema()))";

/// Returns whether no server is connected.
pub(super) const HAS_NO_SERVER: Sql = Sql::only_postgres(
    "SELECT pg_try_advisory_xact_lock(hashtext('lango server ' || current_schema()))",
);

/// Releases leases (`$1` and their fences `$2`), except for locked rows, and tickets (`$3`). Returns the fences of the leases that
/// are left. It does not wait for the disk: a release that a crash of the server undoes is made up for when the lease expires.
pub(super) const RELEASE: &str = "WITH no_sync AS MATERIALIZED (
        SELECT set_config('synchronous_commit', 'off', true)),
     free AS MATERIALIZED (
        SELECT session FROM holds
         WHERE session = ANY ($1::text[]) AND fence = ANY ($2::bigint[])
           AND (SELECT count(*) FROM no_sync) > 0
           FOR NO KEY UPDATE SKIP LOCKED),
     released AS (
        UPDATE holds SET until = '-infinity'
         WHERE session = ANY (ARRAY(SELECT session FROM free)) AND fence = ANY ($2::bigint[])
        RETURNING fence),
     deleted AS (
        DELETE FROM hold_line WHERE ticket = ANY ($3::bigint[]) AND (SELECT count(*) FROM released) >= 0)
     SELECT fence FROM holds
      WHERE session = ANY ($1::text[]) AND fence = ANY ($2::bigint[]) AND until > clock_timestamp()
        AND NOT EXISTS (SELECT FROM released WHERE released.fence = holds.fence)";

/// Returns whether another replica has acquired a session (`$1`) since a lease with this fence (`$2`).
pub(super) const SUCCEEDED: Sql =
    Sql::only_postgres("SELECT 1 FROM holds WHERE session = $1 AND fence <> $2");

/// Notifies all replicas, apart from the transaction that it is about, because notifications make commits wait for each other. It
/// does not wait for the disk, because notifications may be lost.
pub(super) const NOTIFY: &str =
    "SELECT pg_notify(sent.channel, sent.subject), set_config('synchronous_commit', 'off', true)
       FROM unnest($1::text[], $2::text[]) AS sent (channel, subject)";
