//! Passages near to a query in meaning, and how they join those found by words (O-20).

use std::collections::HashMap;

use super::passages::Passage;

/// From this cosine on two texts are about the same thing.
const NEAR: f32 = 0.3;
/// How fast places in a ranking lose weight; the usual value of reciprocal rank fusion.
const FUSION: f64 = 60.0;

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

/// The cosine of two vectors; 0 if one of them has no length.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::passages::passages;

    #[test]
    fn a_passage_that_both_rankings_find_comes_first_and_once() {
        let all = passages("n", "# one\n# two\n# three\n");
        let [one, two, three] = &all[..] else { panic!("{all:?}") };
        let found: Vec<_> = fused(&[one, two], &[two, three]).into_iter().map(|p| p.line).collect();
        assert_eq!(found, [2, 1, 3]);
    }
}
