-- What a start looks for: turns that have no outcome. There are few of them, however many turns there were.

CREATE INDEX turns_unfinished ON turns (session) WHERE finished = 0;
