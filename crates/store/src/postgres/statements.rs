//! The statements that only PostgreSQL needs: to set up connections, and for session leases and their queues. All times are by the
//! database's clock. The table `holds` has the leases, `hold_line` the tickets, and the column `holder` names a replica.

use super::database::answer_limit;
use crate::backend::Sql;
use std::time::Duration;
use tokio_postgres::{Client, Error};

/// Configures a new connection: sets timeouts, and makes commits wait for the disk even if the server is configured otherwise. The
/// idle timeout releases the row locks of a stopped replica well before its leases expire.
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

/// Takes a lock so that only one replica at a time migrates the schema. The lock lasts until the end of the transaction.
pub(super) const LOCK_MIGRATIONS: &str = "SET LOCAL statement_timeout = '10min';
     SELECT pg_advisory_xact_lock(hashtextextended('lango ' || current_setting('search_path'), 0))";

/// Acquires the lease of a session (`$1`) for a replica (`$2`) for `$3` seconds, if no other replica has the lease and no waiter
/// of another replica came before. A replica that already has the lease, for example because a reply was lost, gets a new fencing
/// token. Each replica orders its own waiters, so its first ticket decides its position. Tickets in `$4` were released and do not
/// count. The waiter's ticket (`$5`) is deleted if it acquires the lease. Returns the fencing token if the lease was acquired, and
/// whether the waiter had a ticket.
///
/// The statement locks the lease's row only if the lease seems free, so that waiters can try often.
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

/// Joins the queue of a session (`$1`) if it has fewer than `$5` waiters. Returns the ticket and the number of waiters before it.
///
/// The statement locks no rows that others need, because a replica that stops in the middle must not block the leases of others.
/// So replicas that join at the same time do not see each other, and the queue may exceed its limit.
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

/// Renews leases (sessions `$1`, fencing tokens `$2`) and tickets (`$4`) for `$3` seconds. Skips locked rows, so that they do not
/// block the others. Returns the fencing tokens of the leases that this replica still has, and whether each was renewed.
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

/// Renews one lease (session `$1`, fencing token `$2`) for `$3` seconds, and waits up to `$4` for its row to be unlocked. Returns
/// the token if this replica still has the lease.
pub(super) const RENEW_ALONE: &str = "WITH lock_timeout AS MATERIALIZED (
        SELECT set_config('lock_timeout', $4, true))
     UPDATE holds SET until = clock_timestamp() + make_interval(secs => $3)
      WHERE session = $1 AND fence = $2 AND until > clock_timestamp()
        AND (SELECT count(*) FROM lock_timeout) > 0
     RETURNING fence";

/// Returns the database's clock in seconds.
pub(super) const CLOCK: &str = "SELECT extract(epoch FROM clock_timestamp())::double precision";

/// Shortens leases and tickets whose remaining time exceeds their full length (`$1` for tickets), which happens if the
/// clock was set back. A live owner renews its lease in time; the lease of a dead one expires. Locked rows are skipped,
/// so run it repeatedly.
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

/// Takes the shared advisory lock that every connected server has on its schema. Returns false if the schema does not exist yet.
pub(super) const ATTACH_SERVER: &str = "SELECT current_schema() IS NOT NULL,
            pg_advisory_lock_shared(hashtext('lango server ' || current_schema()))";

/// Returns whether no server is connected.
pub(super) const HAS_NO_SERVER: Sql = Sql::only_postgres(
    "SELECT pg_try_advisory_xact_lock(hashtext('lango server ' || current_schema()))",
);

/// Releases leases (sessions `$1`, fencing tokens `$2`), except locked rows, and tickets (`$3`). Returns the fencing tokens of the
/// leases that are left. It does not wait for the disk: if a crash of the server undoes a release, the lease still expires.
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

/// Returns a row if the session (`$1`) was acquired again after the lease with this fencing token (`$2`).
pub(super) const HAS_SUCCESSOR: Sql =
    Sql::only_postgres("SELECT 1 FROM holds WHERE session = $1 AND fence <> $2");

/// Notifies all replicas. It is not part of the transaction that it announces, because notifications make commits wait for each
/// other. It does not wait for the disk, because notifications may be lost.
pub(super) const NOTIFY: &str =
    "SELECT pg_notify(sent.channel, sent.subject), set_config('synchronous_commit', 'off', true)
       FROM unnest($1::text[], $2::text[]) AS sent (channel, subject)";
