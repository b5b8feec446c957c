//! Which passages of which notes answer a query: BM25 over stemmed words, and trigrams where no word fits.
//!
//! Pure: texts in, passages out, best first. Notes are few and short, so the index lives for one call.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How soon repeated words stop counting; the usual value.
const K1: f64 = 1.2;
/// How much long passages are discounted; the usual value.
const B: f64 = 0.75;
/// From this likeness on a word stands in for one that is not there.
const LIKENESS: f64 = 0.45;
/// A stand-in counts less than the word itself.
const STAND_IN_WEIGHT: f64 = 0.6;
/// From this cosine on two texts are about the same thing.
const NEAR: f32 = 0.3;
/// How fast places in a ranking lose weight; the usual value of reciprocal rank fusion.
const FUSION: f64 = 60.0;
/// Words of a query that count; one that is nowhere is compared with every word of the notes.
const MAX_QUERY_WORDS: usize = 64;
/// Passages are about a paragraph.
const PASSAGE_BYTES: usize = 800;

/// Words that say nothing about a subject.
const STOP_WORDS: [&str; 46] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "did", "do", "does", "for", "from",
    "had", "has", "have", "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "or", "our",
    "that", "the", "this", "to", "was", "we", "were", "what", "when", "where", "which", "who",
    "why", "will", "with", "you", "your",
];

/// A piece of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The note's path.
    pub path: String,
    /// Its first line, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

/// A note in passages: paragraphs, joined while they are short.
pub(super) fn passages(path: &str, text: &str) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let heading = line.starts_with('#');
        match passages.last_mut() {
            Some(last) if open && !heading && last.text.len() + line.len() < PASSAGE_BYTES => {
                last.text.push('\n');
                last.text.push_str(line);
            }
            _ if line.trim().is_empty() => {}
            _ => {
                let (path, text) = (path.to_owned(), line.to_owned());
                passages.push(Passage { path, line: index + 1, text });
                open = true;
            }
        }
    }
    for passage in &mut passages {
        passage.text.truncate(passage.text.trim_end().len());
    }
    passages
}

/// The passages that have something to do with the query, best first.
pub(super) fn rank<'p>(passages: &'p [Passage], query: &str) -> Vec<&'p Passage> {
    let counted: Vec<_> =
        passages.iter().map(|passage| count(&passage.path, &passage.text)).collect();
    let vocabulary: BTreeSet<&str> =
        counted.iter().flat_map(|words| words.keys().map(String::as_str)).collect();
    let lengths: Vec<f64> = counted.iter().map(|words| words.values().sum()).collect();
    let average = (lengths.iter().sum::<f64>() / passages.len().max(1) as f64).max(1.0);
    let mut scores = vec![0.0; passages.len()];
    for (word, weight) in meant(query, &vocabulary) {
        let holding = counted.iter().filter(|words| words.contains_key(word)).count() as f64;
        let rarity = (1.0 + (passages.len() as f64 - holding + 0.5) / (holding + 0.5)).ln();
        for ((score, words), length) in scores.iter_mut().zip(&counted).zip(&lengths) {
            let times = words.get(word).copied().unwrap_or(0.0);
            let long = K1 * (1.0 - B + B * length / average);
            *score += weight * rarity * times * (K1 + 1.0) / (times + long);
        }
    }
    let mut hits: Vec<_> =
        scores.into_iter().zip(passages).filter(|(score, _)| *score > 0.0).collect();
    hits.sort_by(|(left, a), (right, b)| {
        right.total_cmp(left).then_with(|| (&a.path, a.line).cmp(&(&b.path, b.line)))
    });
    hits.into_iter().map(|(_, passage)| passage).collect()
}

/// The places of texts near in meaning to the first, best first; the first itself is not counted.
pub(super) fn nearest(vectors: &[Vec<f32>]) -> Vec<usize> {
    let Some((query, rest)) = vectors.split_first() else { return Vec::new() };
    let mut near: Vec<_> = rest
        .iter()
        .map(|vector| cosine(query, vector))
        .enumerate()
        .filter(|(_, cosine)| *cosine >= NEAR)
        .collect();
    near.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    near.into_iter().map(|(place, _)| place).collect()
}

/// The cosine of two vectors; 0 where there is none.
fn cosine(left: &[f32], right: &[f32]) -> f32 {
    let dot: f32 = left.iter().zip(right).map(|(l, r)| l * r).sum();
    let length = |vector: &[f32]| vector.iter().map(|part| part * part).sum::<f32>().sqrt();
    let lengths = length(left) * length(right);
    if lengths > 0.0 && left.len() == right.len() { dot / lengths } else { 0.0 }
}

/// Two rankings as one, by the places that each passage has in them.
pub(super) fn fused<'p>(words: &[&'p Passage], meaning: &[&'p Passage]) -> Vec<&'p Passage> {
    let mut scores: Vec<(&'p Passage, f64)> = Vec::new();
    let mut known: HashMap<*const Passage, usize> = HashMap::new();
    for ranking in [words, meaning] {
        for (place, passage) in ranking.iter().enumerate() {
            let at = *known.entry(*passage).or_insert_with(|| {
                scores.push((passage, 0.0));
                scores.len() - 1
            });
            scores[at].1 += 1.0 / (FUSION + place as f64);
        }
    }
    scores.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    scores.into_iter().map(|(passage, _)| passage).collect()
}

/// How often each stem occurs. A note's name says what it is about, as one occurrence would.
fn count(path: &str, text: &str) -> BTreeMap<String, f64> {
    let mut words = BTreeMap::new();
    let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md");
    for word in stems(text).chain(stems(name)) {
        *words.entry(word).or_insert(0.0) += 1.0;
    }
    words
}

/// The words of the notes that a query means: its own, or those most like one that is nowhere.
fn meant<'v>(query: &str, vocabulary: &BTreeSet<&'v str>) -> Vec<(&'v str, f64)> {
    let mut wanted = BTreeSet::new();
    for stem in stems(query) {
        wanted.insert(stem);
        if wanted.len() == MAX_QUERY_WORDS {
            break;
        }
    }
    let mut words = Vec::new();
    for stem in &wanted {
        if let Some(&word) = vocabulary.get(stem.as_str()) {
            words.push((word, 1.0));
            continue;
        }
        let grams = trigrams(stem);
        words.extend(vocabulary.iter().filter_map(|&word| {
            let likeness = likeness(&grams, &trigrams(word));
            (likeness >= LIKENESS).then_some((word, likeness * STAND_IN_WEIGHT))
        }));
    }
    words
}

fn stems(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| !STOP_WORDS.contains(&word.as_str()))
        .map(|word| stem(&word).to_owned())
}

/// A word without its English ending. Crude, and the same for both sides, which is what counts.
fn stem(word: &str) -> &str {
    const ENDINGS: [&str; 30] = [
        "izations", "ization", "ational", "ations", "ation", "ements", "ement", "ments", "ment",
        "ingly", "ings", "ing", "edly", "ness", "ions", "ion", "able", "ible", "ally", "ely",
        "ies", "ied", "ly", "ers", "er", "es", "ed", "s", "e", "y",
    ];
    /// What is left must still say something.
    const MIN_STEM: usize = 3;
    let stem = ENDINGS
        .iter()
        .filter_map(|ending| word.strip_suffix(ending))
        .find(|stem| stem.chars().count() >= MIN_STEM)
        .unwrap_or(word);
    // `running` and `run`, `planned` and `plan`.
    let mut letters = stem.chars().rev();
    match (letters.next(), letters.next()) {
        (Some(last), Some(before)) if last == before && stem.chars().count() > MIN_STEM => {
            &stem[..stem.len() - last.len_utf8()]
        }
        _ => stem,
    }
}

fn trigrams(word: &str) -> BTreeSet<[char; 3]> {
    let letters: Vec<char> = std::iter::once('^').chain(word.chars()).collect();
    letters.windows(3).map(|three| [three[0], three[1], three[2]]).collect()
}

/// Dice's coefficient: 0 for nothing in common, 1 for all.
fn likeness(left: &BTreeSet<[char; 3]>, right: &BTreeSet<[char; 3]>) -> f64 {
    let both = left.intersection(right).count() as f64;
    let all = (left.len() + right.len()).max(1) as f64;
    2.0 * both / all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// ES-178
    #[test]
    fn forms_of_a_word_share_a_stem() {
        for forms in [
            "connect connects connected connecting connection connections",
            "plan plans planned planning planner",
            "retry retries retried",
            "test tests tested testing tester",
            "parse parses parsed parsing parser",
        ] {
            let stems: BTreeSet<_> = forms.split(' ').map(stem).collect();
            assert_eq!(stems.len(), 1, "{forms}: {stems:?}");
        }
    }

    #[test]
    fn a_note_is_cut_at_headings_and_when_it_gets_long() {
        let text =
            format!("# One\n\nfirst\n\n## Two\nsecond\n\n{}\nlast\n", "x".repeat(PASSAGE_BYTES));
        let lines: Vec<_> =
            passages("n", &text).into_iter().map(|p| (p.line, p.text.len())).collect();
        assert_eq!(lines, [(1, 12), (5, 13), (8, 800), (9, 4)]);
    }

    #[test]
    fn a_passage_that_both_rankings_find_comes_first_and_once() {
        let all = passages("n", "# one\n# two\n# three\n");
        let [one, two, three] = &all[..] else { panic!("{all:?}") };
        let found: Vec<_> = fused(&[one, two], &[two, three]).into_iter().map(|p| p.line).collect();
        assert_eq!(found, [2, 1, 3]);
    }

    /// A query as long as a call may be is answered by its first words.
    #[test]
    fn a_query_without_end_counts_by_its_first_words() {
        let all = passages("n", "the vault opens at noon\n");
        let tail: String = (0..200_000).map(|number| format!(" w{number}x")).collect();
        assert_eq!(rank(&all, &format!("vault{tail}")).len(), 1);
        assert!(rank(&all, &format!("{tail} vault")).is_empty());
    }

    proptest! {
        #[test]
        fn ranking_never_panics_and_finds_what_is_there_word_for_word(
            notes in proptest::collection::vec(".{0,120}", 0..5), query in ".{0,40}",
        ) {
            let all: Vec<_> = notes.iter().flat_map(|text| passages("n.md", text)).collect();
            let hits = rank(&all, &query);
            prop_assert!(hits.len() <= all.len());
            if let Some(first) = all.first() && stems(&first.text).next().is_some() {
                prop_assert!(rank(&all, &first.text).contains(&first));
            }
        }
    }
}
