//! The statements on the leases of sessions and on the queues for them. All times are the database's own. The tables have
//! older names: `holds` has the leases, `hold_line` the tickets, and `holder` is a replica.

use crate::engine::Sql;

/// Takes hold of a session (`$1`) for us (`$2`) for so many seconds (`$3`), if nobody else has it and nobody else came
/// before. What we had, or do not know that we have, we get again under a new number. Within a copy of lango the
/// order is its own affair, so its place is that of its first ticket. Tickets that were given up (`$4`) do not count, and
/// one that was waited with (`$5`) is given back.
pub(in crate::postgres) const CLAIM: Sql = Sql::only_postgres(
    "WITH line AS MATERIALIZED (
        SELECT count(*) AS before FROM hold_line
         WHERE session = $1 AND holder <> $2 AND until > clock_timestamp()
           AND ticket < coalesce((SELECT min(ticket) FROM hold_line
                                   WHERE session = $1 AND holder = $2 AND ticket <> ALL ($4::bigint[])),
                                 9223372036854775807)),
     claimed AS (
        INSERT INTO holds (session, holder, fence, until)
        SELECT $1, $2, nextval('hold_fences'), clock_timestamp() + make_interval(secs => $3)
          FROM line WHERE before = 0
            ON CONFLICT (session) DO UPDATE
           SET holder = excluded.holder, fence = nextval('hold_fences'),
               until = clock_timestamp() + make_interval(secs => $3)
         WHERE holds.until <= clock_timestamp() OR holds.holder = excluded.holder
        RETURNING fence),
     given_back AS (
        DELETE FROM hold_line
         WHERE ticket = ANY ($4::bigint[]) OR ticket = $5 AND EXISTS (SELECT FROM claimed))
     SELECT fence FROM claimed",
);

/// Joins the line before a session (`$1`), if fewer than `$5` are in it. Gives the ticket, and how many were there.
///
/// It locks nothing that anybody else needs, and nothing for longer than itself: a copy that stops in the middle must not
/// keep others from what they hold. Hence those who come at one moment do not see each other, and the line is longer by
/// them; within a copy it never is.
pub(in crate::postgres) const JOIN_QUEUE: Sql = Sql::only_postgres(
    "WITH line AS MATERIALIZED (
        SELECT count(*) AS waiting FROM hold_line
         WHERE session = $1 AND until > clock_timestamp() AND ticket <> ALL ($4::bigint[])),
     left_over AS (
        DELETE FROM hold_line
         WHERE session = $1 AND (until <= clock_timestamp() OR ticket = ANY ($4::bigint[]))),
     joined AS (
        INSERT INTO hold_line (session, holder, until)
        SELECT $1, $2, clock_timestamp() + make_interval(secs => $3) FROM line WHERE waiting < $5
        RETURNING ticket)
     SELECT (SELECT ticket FROM joined), waiting FROM line",
);

/// Whether it may be our turn (`$2`) at a session (`$1`), and whether our ticket (`$3`) is still in the line. Tickets that
/// were given up (`$4`) do not count.
pub(in crate::postgres) const IS_NEXT: Sql = Sql::only_postgres(
    "SELECT NOT EXISTS (SELECT FROM holds
                         WHERE session = $1 AND until > clock_timestamp() AND holder <> $2)
        AND NOT EXISTS (SELECT FROM hold_line
                         WHERE session = $1 AND until > clock_timestamp() AND holder <> $2
                           AND ticket < (SELECT min(ticket) FROM hold_line
                                          WHERE session = $1 AND holder = $2
                                            AND ticket <> ALL ($4::bigint[]))),
            EXISTS (SELECT FROM hold_line WHERE ticket = $3)",
);

/// Renews holds (`$1` and their numbers `$2`) and tickets (`$4`), all but those that somebody has locked: one of them must
/// not keep the others waiting. Gives the numbers of the holds that are still ours, and whether they were renewed.
pub(in crate::postgres) const RENEW: &str = "WITH free AS MATERIALIZED (
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

/// Renews one hold (`$1` and its number `$2`), and waits for whoever has locked it for as long as `$4` says. Gives its
/// number, if it is still ours.
pub(in crate::postgres) const RENEW_ALONE: &str = "WITH lock_wait AS MATERIALIZED (
        SELECT set_config('lock_timeout', $4, true))
     UPDATE holds SET until = clock_timestamp() + make_interval(secs => $3)
      WHERE session = $1 AND fence = $2 AND until > clock_timestamp()
        AND (SELECT count(*) FROM lock_wait) > 0
     RETURNING fence";

/// Lets go of holds (`$1` and their numbers `$2`), all but those that somebody has locked, and of tickets (`$3`). Gives the
/// numbers of the holds that are left. It waits for no disk: a hold that comes back because the server fell over ends with
/// its lease.
pub(in crate::postgres) const RELEASE: &str = "WITH quickly AS MATERIALIZED (
        SELECT set_config('synchronous_commit', 'off', true)),
     free AS MATERIALIZED (
        SELECT session FROM holds
         WHERE session = ANY ($1::text[]) AND fence = ANY ($2::bigint[])
           AND (SELECT count(*) FROM quickly) > 0
           FOR NO KEY UPDATE SKIP LOCKED),
     released AS (
        UPDATE holds SET until = '-infinity'
         WHERE session = ANY (ARRAY(SELECT session FROM free)) AND fence = ANY ($2::bigint[])
        RETURNING fence),
     given_back AS (
        DELETE FROM hold_line WHERE ticket = ANY ($3::bigint[]) AND (SELECT count(*) FROM released) >= 0)
     SELECT fence FROM holds
      WHERE session = ANY ($1::text[]) AND fence = ANY ($2::bigint[]) AND until > clock_timestamp()
        AND NOT EXISTS (SELECT FROM released WHERE released.fence = holds.fence)";

/// Whether somebody has taken a session (`$1`) since it was held under a number (`$2`).
pub(in crate::postgres) const SUCCEEDED: Sql =
    Sql::only_postgres("SELECT 1 FROM holds WHERE session = $1 AND fence <> $2");

/// What a copy listens to, to be told sooner than it would look.
pub(in crate::postgres) const LISTEN: &str =
    "LISTEN lango_events; LISTEN lango_tasks; LISTEN lango_holds";

/// Tells all copies. Apart from what it tells of: a notification makes commits wait for each other. It waits for no disk,
/// because nobody relies on it.
pub(in crate::postgres) const NOTIFY: &str =
    "SELECT pg_notify(said.channel, said.what), set_config('synchronous_commit', 'off', true)
       FROM unnest($1::text[], $2::text[]) AS said (channel, what)";

/// The number of our connection, which is on all that is said over it.
pub(in crate::postgres) const WHO_WE_ARE: &str = "SELECT pg_backend_pid()";
