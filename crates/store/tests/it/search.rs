//! Ranking a handful of texts for a query.

use proptest::prelude::*;
use windlass_store::search::rank;

fn ids(query: &str, texts: &[&str]) -> Vec<usize> {
    let documents = texts.iter().copied().enumerate();
    rank(query, documents).unwrap().into_iter().map(|ranked| ranked.id).collect()
}

/// ES-178
#[test]
fn forms_of_a_word_find_each_other() {
    for forms in [
        "connect connects connected connecting connection connections",
        "plan plans planned planning planner",
        "retry retries retried",
        "test tests tested testing tester",
        "parse parses parsed parsing parser",
    ] {
        for form in forms.split(' ') {
            for query in forms.split(' ') {
                assert_eq!(ids(query, &["nothing to see", form]), [1], "{query}: {form}");
            }
        }
    }
}

#[test]
fn the_text_with_more_of_the_query_comes_first() {
    let texts = ["the vault opens at noon", "the vault", "noon", "an owl", "a crow", "a rook"];
    assert_eq!(ids("vault at noon", &texts)[0], 0);
    assert!(ids("raven", &texts).is_empty());
}

#[test]
fn a_misspelled_word_finds_the_word_it_is_like() {
    assert_eq!(ids("conections", &["the connection is open", "a config file"]), [0]);
    assert!(ids("quantum chromodynamics", &["the connection is open"]).is_empty());
}

#[test]
fn words_that_say_nothing_find_nothing() {
    assert!(ids("the of and", &["the end of the day and night"]).is_empty());
    assert!(ids("", &["text"]).is_empty());
}

#[test]
fn operators_of_the_index_are_plain_words() {
    assert_eq!(ids("NOT \"owl\" NEAR(owl*) text:x", &["an owl"]), [0]);
}

#[test]
fn only_the_first_words_of_an_endless_query_count() {
    let tail: String = (0..200_000).map(|number| format!(" w{number}x")).collect();
    let texts = ["the vault opens at noon"];
    assert_eq!(ids(&format!("vault{tail}"), &texts), [0]);
    assert!(ids(&format!("{tail} vault"), &texts).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_query_is_legal_and_a_text_finds_itself(
        texts in proptest::collection::vec(".{0,120}", 0..5),
        word in "[a-z]{5,12}",
        query in ".{0,40}",
    ) {
        let all = texts.iter().map(String::as_str).chain([word.as_str()]).enumerate();
        prop_assert!(rank(&query, all.clone()).unwrap().len() <= texts.len() + 1);
        let itself = rank(&word, all).unwrap();
        prop_assert!(itself.iter().any(|ranked| ranked.id == texts.len()));
    }
}
