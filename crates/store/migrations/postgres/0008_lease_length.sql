-- The length of a lease in seconds: no lease ends later than that from now, so one that seems to was made before this
-- server's clock was set back.
ALTER TABLE holds ADD COLUMN seconds DOUBLE PRECISION NOT NULL DEFAULT 15;
