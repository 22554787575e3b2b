-- The length of a lease in seconds. A valid lease never expires later than that from now, so one that does was created before this
-- server's clock was set back.
ALTER TABLE holds ADD COLUMN seconds DOUBLE PRECISION NOT NULL DEFAULT 15;
