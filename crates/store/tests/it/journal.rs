//! Creating tasks, appending and reading.

use windlass_core::event::Event;
use windlass_core::status::TaskStatus;
use windlass_store::{Bookmark, Creation, Error, Level, StreamCursors};

use crate::world::{World, at, child_of, created, moved, reply, request};

#[tokio::test]
async fn what_was_appended_is_read_back_with_its_place_and_iteration() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let mut stream = owner.stream(task).unwrap();
    let events =
        vec![moved(TaskStatus::Todo, TaskStatus::Running), request(), reply("a"), request()];
    let appended = stream.append(at(1), events, Level::Written).await.unwrap();
    let more = stream.append(at(2), vec![reply("b")], Level::Synced).await.unwrap();

    let journal = store.journal().of(task).unwrap();
    let returned: Vec<_> = appended.into_iter().chain(more).collect();
    assert_eq!(journal[1..], returned);
    let line = |record: &windlass_core::event::Record| {
        format!("{} {} {}", record.seq, record.iteration, record.event.kind())
    };
    let lines: Vec<_> = journal.iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    1 0 task_created
    2 0 status_changed
    3 1 llm_request
    4 1 llm_response
    5 2 llm_request
    6 2 llm_response
    ");
    for seq in 0..journal.len() {
        assert_eq!(store.journal().after(task, seq as u64, 100).unwrap(), journal[seq..]);
        let pos = if seq == 0 { 0 } else { journal[seq - 1].pos };
        assert_eq!(store.journal().since(pos, 100).unwrap(), journal[seq..]);
    }
    assert_eq!(store.journal().after(task, 1, 2).unwrap(), journal[1..3]);
}

#[tokio::test]
async fn followers_read_on_what_is_new_with_its_place_and_iteration() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let mut stream = owner.stream(task).unwrap();
    let mut bookmark = Bookmark::after(task, 0);
    let (mut one, mut all) = (Vec::new(), Vec::new());
    let (mut pos, mut known) = (0, StreamCursors::default());
    for second in 1..8 {
        let events = vec![request(), reply("a")];
        stream.append(at(second), events, Level::Written).await.unwrap();
        // A page is smaller than what was committed, so that some of it is read the next time.
        one.extend(store.journal().read_on(&mut bookmark, 1).unwrap());
        let page = store.journal().follow(pos, 1, &mut known).unwrap();
        pos = page.last().map_or(pos, |record| record.pos);
        all.extend(page);
    }
    one.extend(store.journal().read_on(&mut bookmark, 100).unwrap());
    all.extend(store.journal().follow(pos, 100, &mut known).unwrap());
    let journal = store.journal().of(task).unwrap();
    assert_eq!(journal.len(), 15);
    assert_eq!((one, all), (journal.clone(), journal.clone()));
    assert_eq!(store.journal().read_on(&mut bookmark, 100).unwrap(), []);
    let mut middle = Bookmark::after(task, 6);
    assert_eq!(store.journal().read_on(&mut middle, 100).unwrap(), journal[6..]);
}

#[tokio::test]
async fn a_repeated_command_creates_nothing_and_names_the_first_task() {
    let world = World::new();
    let store = world.open();
    let first = created();
    let task = first.command.task_id;
    assert_eq!(store.tasks().create(at(0), first.clone()).await.unwrap(), Creation::New(task));
    let mut again = created();
    again.command.command_id = first.command.command_id;
    assert_eq!(store.tasks().create(at(1), again).await.unwrap(), Creation::Already(task));
    assert_eq!(store.tasks().list(&Default::default()).unwrap().len(), 1);

    let mut other = created();
    other.command.task_id = task;
    other.root = task;
    let error = store.tasks().create(at(1), other).await.unwrap_err();
    assert!(matches!(error, Error::TaskExists(id) if id == task));
}

#[tokio::test]
async fn children_append_beside_their_parent_under_one_owner() {
    let world = World::new();
    let store = world.open();
    let root = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(root).await.unwrap();
    let child = owner.create_child(at(1), child_of(root, root)).await.unwrap().task();
    let mut parents = owner.stream(root).unwrap();
    let mut childs = owner.stream(child).unwrap();
    assert!(matches!(owner.stream(child), Err(Error::StreamInUse(id)) if id == child));
    let (a, b) = tokio::join!(
        parents.append(at(2), vec![request()], Level::Written),
        childs.append(at(2), vec![request()], Level::Written),
    );
    assert_eq!((a.unwrap()[0].seq, b.unwrap()[0].seq), (2, 2));
    assert_eq!(store.owners().own(child).await.err().unwrap().to_string(), {
        let pid = std::process::id();
        format!("`{root}` is running in process {pid}")
    });
    drop(owner);
    assert!(store.owners().driving_process(child).unwrap().is_some());
    drop((parents, childs));
    assert_eq!(store.owners().driving_process(root).unwrap(), None);
    store.owners().own(child).await.unwrap();
}

/// ES-089: the move that is illegal is named, and nothing of its append is kept.
#[tokio::test]
async fn an_append_with_an_illegal_move_is_refused_whole() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let events = vec![request(), moved(TaskStatus::Todo, TaskStatus::Done)];
    let error = owner.append(at(1), events, Level::Written).await.unwrap_err();
    let Error::IllegalMove { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.to_string(), "a task that is `todo` cannot become `done`");
    let again = vec![Event::TaskCreated(Box::new(created()))];
    let error = owner.append(at(1), again, Level::Written).await.unwrap_err();
    assert!(matches!(error, Error::DuplicateCreation(_)));
    assert_eq!(store.journal().of(task).unwrap().len(), 1);
}
