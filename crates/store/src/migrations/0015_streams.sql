-- Events name their stream by a number and their time by nanoseconds: the name of a stream was a third of each row and
-- most of each entry of its indexes. Times of earlier rows stay texts. `events` is what readers know, as it was.
CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
INSERT INTO streams (name) SELECT stream FROM events WHERE seq = 1 ORDER BY pos;
INSERT OR IGNORE INTO streams (name) SELECT DISTINCT stream FROM events;
CREATE TABLE journal (
    pos INTEGER PRIMARY KEY AUTOINCREMENT,
    stream INTEGER NOT NULL,
    seq INTEGER NOT NULL CHECK (seq >= 1),
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    v INTEGER NOT NULL,
    body TEXT NOT NULL,
    content BLOB,
    hash BLOB,
    UNIQUE (stream, seq)
);
INSERT INTO journal (pos, stream, seq, at, kind, v, body, content, hash)
    SELECT pos, streams.id, seq, at, kind, v, body, content, hash
    FROM events JOIN streams ON streams.name = events.stream ORDER BY pos;
-- The last events may have been removed; their positions are not given again.
DELETE FROM sqlite_sequence WHERE name = 'journal';
INSERT INTO sqlite_sequence (name, seq) SELECT 'journal', seq FROM sqlite_sequence WHERE name = 'events';
DROP TABLE events;
-- Counts a stream's turns up to a cursor without reading bodies.
CREATE INDEX journal_replies ON journal (stream, seq) WHERE kind = 'llm_response';
CREATE INDEX journal_contents ON journal (content) WHERE content IS NOT NULL;
CREATE VIEW events AS
    SELECT journal.pos, streams.name AS stream, seq,
           CASE typeof(at)
               WHEN 'integer' THEN strftime('%Y-%m-%dT%H:%M:%S', at / 1000000000, 'unixepoch')
                   || printf('.%09dZ', at % 1000000000)
               ELSE at
           END AS at,
           at AS instant, kind, v, body, content, hash
    FROM journal LEFT JOIN streams ON streams.id = journal.stream;
