-- Whether a person has put a session away: lists leave it out. A projection.
ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
