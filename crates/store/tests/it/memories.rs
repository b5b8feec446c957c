//! Memories are found by meaning of words, best first.

use proptest::prelude::*;
use windlass_store::NewMemory;

use crate::world::{World, at};

fn memory(text: &str) -> NewMemory {
    NewMemory { text: text.to_owned(), tags: vec!["notes".to_owned()], task: None, session: None }
}

#[tokio::test]
async fn the_best_fitting_memory_comes_first() {
    let world = World::new();
    let store = world.open();
    for text in [
        "the user prefers tabs",
        "tests of the parser are flaky on slow machines",
        "parsing dates: the parser takes ISO dates only, the parser refuses others",
    ] {
        store.memories().add(at(0), memory(text)).await.unwrap();
    }
    let texts = |query: &str| -> Vec<String> {
        store.memories().search(query, 5).unwrap().into_iter().map(|found| found.text).collect()
    };
    assert_eq!(texts("parsers")[0], texts("parser")[0]);
    assert!(texts("parser date").first().unwrap().starts_with("parsing dates"));
    assert_eq!(texts("test").len(), 1);
    assert_eq!(texts("notes").len(), 3);
    assert!(texts("").is_empty());
}

#[test]
fn any_text_is_a_legal_query() {
    let world = World::new();
    let store = world.open();
    proptest!(|(query in ".{0,40}")| {
        store.memories().search(&query, 3).unwrap();
    });
}
