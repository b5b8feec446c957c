//! Memories are found by meaning of words, best first.

use proptest::prelude::*;
use windlass_core::event::TaskCreated;
use windlass_store::NewMemory;

use crate::world::{World, at, created};

fn memory(text: &str) -> NewMemory {
    let (text, tags) = (text.to_owned(), vec!["notes".to_owned()]);
    NewMemory { text, tags, task: None, session: None, project: None }
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
        store
            .memories()
            .search(query, None, None, 5)
            .unwrap()
            .into_iter()
            .map(|found| found.text)
            .collect()
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
        store.memories().search(&query, None, None, 3).unwrap();
    });
}

/// What a task of one user was given is not read by the tasks of another, also where it belongs to no directory.
#[tokio::test]
async fn a_memory_of_a_users_task_is_recalled_for_them_alone() {
    let world = World::new();
    let store = world.open();
    let mut sessions = Vec::new();
    for user in ["bob", "bob", "eve"] {
        let created = TaskCreated { user_id: Some(user.to_owned()), ..created() };
        sessions.push((created.command.task_id, created.command.session_id));
        store.tasks().create(at(0), created).await.unwrap();
    }
    let (task, session) = sessions[0];
    let own = NewMemory { task: Some(task), session: Some(session), ..memory("the gate squeaks") };
    store.memories().add(at(0), own).await.unwrap();
    store.memories().add(at(0), memory("the gate is green")).await.unwrap();
    let found = |session| store.memories().recall("gate", "/p", session, 9).unwrap().len();
    assert_eq!(sessions.iter().map(|(_, session)| found(*session)).collect::<Vec<_>>(), [2, 2, 1]);
}

#[tokio::test]
async fn what_belongs_to_a_project_is_not_found_in_another() {
    let world = World::new();
    let store = world.open();
    for project in [None, Some("/a"), Some("/b")] {
        let text = format!("the gate squeaks in {project:?}");
        let project = project.map(str::to_owned);
        store.memories().add(at(0), NewMemory { project, ..memory(&text) }).await.unwrap();
    }
    let found = |project| {
        let found = store.memories().search("gate", project, None, 9).unwrap().into_iter();
        let mut texts: Vec<_> = found.map(|memory| memory.text).collect();
        texts.sort();
        texts
    };
    assert_eq!(found(None).len(), 3);
    assert_eq!(found(Some("/a")), ["the gate squeaks in None", "the gate squeaks in Some(\"/a\")"]);
}
