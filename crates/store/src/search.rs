//! Ranks a handful of texts for a query, in a full-text index that lives for one call.
//!
//! SQLite's FTS5 finds forms of a word (Porter's stemmer) and ranks by BM25. A word that no text has is
//! replaced by the words most like it, so that a typing error still finds something.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::Error;
use crate::error::Fault;

/// Words of a query that count; the rest of a very long one is left out.
const MAX_WORDS: usize = 64;

/// From this likeness on a word of the texts replaces one that none of them has.
const MIN_LIKENESS: f64 = 0.5;

/// Words whose lengths differ by more are not compared.
const MAX_LENGTH_DIFFERENCE: usize = 4;

/// Words that say nothing about a subject.
const STOP_WORDS: [&str; 46] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "did", "do", "does", "for", "from",
    "had", "has", "have", "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "or", "our",
    "that", "the", "this", "to", "was", "we", "were", "what", "when", "where", "which", "who",
    "why", "will", "with", "you", "your",
];

/// A text that has something to do with the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The id that the caller gave the text.
    pub id: usize,
    /// How well it fits; larger is better, and only comparable within one ranking.
    pub score: f64,
}

/// The texts that have something to do with the query, the best first. Any text is a legal query.
pub fn rank(
    query: &str,
    documents: impl IntoIterator<Item = (usize, impl AsRef<str>)>,
) -> Result<Vec<Match>, Error> {
    let words = words(query);
    if words.is_empty() {
        return Ok(Vec::new());
    }
    search(&words, documents).map_err(|fault| fault.at(Path::new(":memory:")))
}

fn search(
    words: &[String],
    documents: impl IntoIterator<Item = (usize, impl AsRef<str>)>,
) -> Result<Vec<Match>, Fault> {
    let index = Connection::open_in_memory()?;
    index.execute_batch(
        // `spellings` has whole words: a stem from `texts` would be stemmed again when it is searched for.
        "CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', tokenize = 'porter unicode61');
         CREATE VIRTUAL TABLE spellings USING fts5 (text, content = '', detail = 'none');
         CREATE VIRTUAL TABLE vocabulary USING fts5vocab (spellings, 'row');
         BEGIN",
    )?;
    let mut insert = index.prepare("INSERT INTO texts (rowid, text) VALUES (?1, ?2)")?;
    let mut spell = index.prepare("INSERT INTO spellings (rowid, text) VALUES (?1, ?2)")?;
    for (id, text) in documents {
        let id = i64::try_from(id).unwrap_or(i64::MAX);
        insert.execute((id, text.as_ref()))?;
        spell.execute((id, text.as_ref()))?;
    }
    let terms = terms(&index, words)?;
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let mut statement = index.prepare(
        "SELECT rowid, -bm25(texts) AS score FROM texts WHERE texts MATCH ?1
         ORDER BY score DESC, rowid",
    )?;
    let ranked = statement.query_map([any_of(&terms)], |row| {
        Ok(Match { id: usize::try_from(row.get::<_, i64>(0)?).unwrap_or(0), score: row.get(1)? })
    })?;
    Ok(ranked.collect::<Result<_, _>>()?)
}

/// The words to look for: those of the query that some text has, and what is like the others.
fn terms(index: &Connection, words: &[String]) -> Result<Vec<String>, Fault> {
    let mut known = index.prepare("SELECT 1 FROM texts WHERE texts MATCH ?1 LIMIT 1")?;
    let mut missing = Vec::new();
    let mut terms = Vec::new();
    for word in words {
        match known.query_row([any_of(&[word])], |_| Ok(())).optional()? {
            Some(()) => terms.push(word.clone()),
            None => missing.push(word),
        }
    }
    if missing.is_empty() {
        return Ok(terms);
    }
    let mut vocabulary = index.prepare("SELECT term FROM vocabulary")?;
    let mut rows = vocabulary.query([])?;
    while let Some(row) = rows.next()? {
        let term: String = row.get(0)?;
        if missing.iter().any(|word| is_similar(word, &term)) {
            terms.push(term);
        }
    }
    Ok(terms)
}

fn is_similar(word: &str, term: &str) -> bool {
    word.len().abs_diff(term.len()) <= MAX_LENGTH_DIFFERENCE
        && strsim::sorensen_dice(word, term) >= MIN_LIKENESS
}

/// The words of a query that say something, each once.
fn words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in query.split(|letter: char| !letter.is_alphanumeric()) {
        let word = word.to_lowercase();
        if !word.is_empty() && !STOP_WORDS.contains(&word.as_str()) && !words.contains(&word) {
            words.push(word);
        }
        if words.len() == MAX_WORDS {
            break;
        }
    }
    words
}

/// A query that any one of these words satisfies; quoted, so that none is an operator.
pub(crate) fn any_of(words: &[impl AsRef<str>]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("\"{}\"", word.as_ref())).collect();
    quoted.join(" OR ")
}
