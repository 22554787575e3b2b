-- Unfinished turns, which every start looks up. They are few, however many turns there are.

CREATE INDEX turns_unfinished ON turns (session) WHERE finished = 0;
