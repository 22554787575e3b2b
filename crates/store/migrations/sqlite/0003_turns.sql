-- One row per turn, with the positions of its question, its answer and the delegation behind that answer in the log. So the
-- history of a few turns is read without scanning the log, however long the session is.

CREATE TABLE turns (
    session        TEXT NOT NULL REFERENCES sessions (id),
    ordinal        INTEGER NOT NULL,
    turn           TEXT NOT NULL,
    first_seq      INTEGER NOT NULL,
    question_seq   INTEGER NOT NULL,
    delegation_seq INTEGER,
    answer_seq     INTEGER,
    finished       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, ordinal)
) STRICT, WITHOUT ROWID;

-- A turn extends from its question to the next question, so every subquery reads only its own part of the log.
-- In old logs, where `turn.finished` does not name the answer, it is the last message that ends a frame.
WITH question AS (
    SELECT session, seq, turn,
           row_number() OVER (PARTITION BY session ORDER BY seq) - 1 AS ordinal,
           lead(seq, 1, 9223372036854775807) OVER (PARTITION BY session ORDER BY seq) AS next_question
      FROM events
     WHERE body ->> '$.type' = 'user.message'
),
outcome AS (
    SELECT question.*,
           (SELECT event.body FROM events AS event
             WHERE event.session = question.session AND event.seq > question.seq
               AND event.seq < question.next_question
               AND event.body ->> '$.type' = 'turn.finished'
             ORDER BY event.seq DESC LIMIT 1) AS finish
      FROM question
)
INSERT INTO turns (session, ordinal, turn, first_seq, question_seq, delegation_seq, answer_seq, finished)
SELECT session, ordinal, turn, seq, seq,
       (SELECT max(event.seq) FROM events AS event
         WHERE event.session = outcome.session AND event.seq > outcome.seq AND event.seq < outcome.next_question
           AND event.body ->> '$.type' = 'agent.delegated' AND event.body ->> '$.finish' = 1),
       coalesce(
           finish ->> '$.answer',
           CASE finish ->> '$.outcome' WHEN 'answered' THEN
               (SELECT max(event.seq) FROM events AS event
                 WHERE event.session = outcome.session AND event.seq > outcome.seq
                   AND event.seq < outcome.next_question
                   AND event.body ->> '$.type' IN ('agent.message', 'remote.returned')
                   AND event.body ->> '$.final' = 1)
           END),
       finish IS NOT NULL
  FROM outcome;
