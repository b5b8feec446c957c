-- The directory that a memory belongs to: what was learned in one project is not told in another.
ALTER TABLE memories ADD COLUMN project TEXT;
