//! Damage is noticed and named, and everything else goes on.

use std::fs;

use rusqlite::Connection;
use windlass_core::event::{AgentStart, Event};
use windlass_core::id::TaskId;
use windlass_core::message::{ArgumentSchema, Prelude, ToolSpec};
use windlass_store::{
    Bookmark, Difference, Error, JournalEntry, Level, Options, Store, StreamCursors,
};

use crate::world::{World, at, created, reply, request};

/// A task with five events, the second of them a beginning with a prompt.
async fn task(store: &Store) -> TaskId {
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let begun = vec![begin(task, "# You\nare an agent."), request(), reply("a"), request()];
    owner.append(at(1), begun, Level::Written).await.unwrap();
    task
}

fn begin(task: TaskId, system: &str) -> Event {
    let tool = ToolSpec {
        name: "read".to_owned(),
        description: "Reads a file. ".repeat(50),
        parameters: ArgumentSchema::from(&serde_json::json!({ "type": "object" })),
    };
    Event::AgentStart(Box::new(AgentStart {
        task_id: task,
        goal: "fix the build".to_owned(),
        model: "test/model".to_owned(),
        container: "local".to_owned(),
        sandbox_gaps: String::new(),
        tools: vec!["read".to_owned()],
        axes: None,
        role: None,
        risk_policy: "normal".to_owned(),
        max_iterations: 200,
        timeout_ms: None,
        compaction_config: serde_json::Value::Null,
        guard: None,
        prelude: Some(Prelude { system: system.to_owned(), tools: vec![tool] }),
        skills: Default::default(),
        context: Vec::new(),
        said: Vec::new(),
        followed_skills: Vec::new(),
    }))
}

fn database(world: &World) -> Connection {
    Connection::open(world.dir.path().join("windlass.db")).unwrap()
}

fn seq_of(error: &Error) -> u64 {
    let Error::DamagedEvent { seq, .. } = error else { panic!("{error:?}") };
    *seq
}

/// The rows of the stream that has this name.
const OF_STREAM: &str = "stream = (SELECT id FROM streams WHERE name = ?1)";

#[tokio::test]
async fn a_change_in_any_field_of_an_event_is_noticed() {
    for change in [
        "pos = pos + 1000",
        "at = '2023-11-14T22:13:22.000000000Z'",
        "kind = 'llm_requesu'",
        "v = 0",
        "body = replace(body, '10', '11')",
        "body = CAST(body AS BLOB)",
        "body = 7",
        "hash = zeroblob(16)",
        "hash = NULL",
        "hash = 'text'",
        "content = zeroblob(16)",
        "seq = 1000",
        "stream = stream + 1000",
    ] {
        let world = World::new();
        let store = world.open();
        let (broken, sound) = (task(&store).await, task(&store).await);
        let changed = database(&world)
            .execute(
                &format!("UPDATE journal SET {change} WHERE {OF_STREAM} AND seq = 3"),
                [broken.to_string()],
            )
            .unwrap();
        assert_eq!(changed, 1);
        let error = store.journal().of(broken).unwrap_err();
        assert_eq!(seq_of(&error), 3, "{change}: {error}");
        assert!(error.to_string().contains(&broken.to_string()) || change.starts_with("stream"));
        assert_eq!(store.journal().of(sound).unwrap().len(), 5, "{change}");
        let found = store.projections().verify().unwrap();
        let named = |difference: &Difference| match difference {
            Difference::Event { stream, .. } => *stream == broken.to_string(),
            Difference::Missing { .. } | Difference::Surplus { .. } => false,
            Difference::Pages { .. } | Difference::Value { .. } => false,
        };
        let is_gone = change.starts_with("stream") || change.starts_with("seq");
        assert!(found.iter().any(named) || is_gone && !found.is_empty(), "{change}: {found:?}");
        assert!(store.journal().after(broken, 2, 10).is_err(), "{change}");
        let mut bookmark = Bookmark::after(broken, 2);
        assert!(store.journal().read_on(&mut bookmark, 10).is_err(), "{change}");
    }
}

#[tokio::test]
async fn a_follower_of_all_notices_an_event_that_is_damaged_later() {
    let world = World::new();
    let store = world.open();
    let task = task(&store).await;
    let mut known = StreamCursors::default();
    let first = store.journal().follow(0, 2, &mut known).unwrap();
    let changed = format!("UPDATE journal SET body = '{{}}' WHERE {OF_STREAM} AND seq = 4");
    database(&world).execute(&changed, [task.to_string()]).unwrap();
    let pos = first.last().unwrap().pos;
    let sound = store.journal().follow(pos, 10, &mut known).unwrap();
    assert_eq!(sound.iter().map(|record| record.seq).collect::<Vec<_>>(), [3]);
    let error = store.journal().follow(sound[0].pos, 10, &mut known).unwrap_err();
    assert_eq!(seq_of(&error), 4);
    // What follows it is read.
    let after = store.journal().follow(sound[0].pos + 1, 10, &mut known).unwrap();
    assert_eq!(after.iter().map(|record| record.seq).collect::<Vec<_>>(), [5]);
}

#[tokio::test]
async fn missing_and_reordered_events_are_noticed() {
    for (change, seq) in [
        (format!("DELETE FROM journal WHERE {OF_STREAM} AND seq = 1"), 1),
        (format!("DELETE FROM journal WHERE {OF_STREAM} AND seq = 3"), 3),
        (format!("DELETE FROM journal WHERE {OF_STREAM} AND seq >= 4"), 4),
        (format!("DELETE FROM journal WHERE {OF_STREAM}"), 1),
        ("UPDATE streams SET name = upper(name) WHERE name = ?1".to_owned(), 1),
        (
            format!(
                "UPDATE journal SET (at, kind, v, body, hash) =
                     (SELECT at, kind, v, body, hash FROM journal AS other
                      WHERE other.stream = journal.stream AND other.seq = 7 - journal.seq)
                 WHERE {OF_STREAM} AND seq IN (3, 4)"
            ),
            3,
        ),
    ] {
        let world = World::new();
        let store = world.open();
        let (broken, sound) = (task(&store).await, task(&store).await);
        database(&world).execute(&change, [broken.to_string()]).unwrap();
        assert_eq!(seq_of(&store.journal().of(broken).unwrap_err()), seq, "{change}");
        assert_eq!(store.journal().of(sound).unwrap().len(), 5);
        assert_ne!(store.projections().verify().unwrap(), [], "{change}");
    }
}

/// A reader page by page notices it at the end, as a reader of the whole does.
#[tokio::test]
async fn a_journal_that_was_cut_or_has_no_checksums_is_refused() {
    for (change, seq) in [
        (format!("DELETE FROM journal WHERE {OF_STREAM} AND seq >= 4"), 4),
        (format!("UPDATE journal SET hash = NULL WHERE {OF_STREAM}"), 5),
    ] {
        let world = World::new();
        let store = world.open();
        let (broken, sound) = (task(&store).await, task(&store).await);
        database(&world).execute(&change, [broken.to_string()]).unwrap();
        assert_eq!(seq_of(&store.journal().of(broken).unwrap_err()), seq, "{change}");
        let read = store.journal().after(broken, 0, 10).unwrap().len() as u64;
        assert_eq!(seq_of(&store.journal().after(broken, read, 10).unwrap_err()), seq, "{change}");
        assert_eq!(store.journal().after(sound, 5, 10).unwrap(), []);
    }
}

/// `Ok` is an event, `Err` the places of what is damaged.
fn places(store: &Store, task: TaskId, limit: usize) -> Vec<Result<u64, (u64, u64, &'static str)>> {
    let (mut places, mut after) = (Vec::new(), 0);
    loop {
        let page = store.journal().readable(task, after, limit).unwrap();
        let Some(last) = page.last() else { return places };
        after = last.seq();
        places.extend(page.into_iter().map(|entry| match entry {
            JournalEntry::Event(record) => Ok(record.seq),
            JournalEntry::Damaged(damage) => Err((damage.first, damage.last, damage.problem)),
        }));
    }
}

/// It is the same for a reader of the whole and for one page by page.
#[tokio::test]
async fn damage_is_named_in_its_place_and_hides_nothing_else() {
    const CHANGED: &str = "it does not match its checksum";
    const MISSING: &str = "it is missing";
    for (change, expected) in [
        (
            format!("UPDATE journal SET body = '{{}}' WHERE {OF_STREAM} AND seq = 3"),
            vec![Ok(1), Ok(2), Err((3, 3, CHANGED)), Ok(4), Ok(5)],
        ),
        // The checksum of the next one covers it.
        (
            format!("DELETE FROM journal WHERE {OF_STREAM} AND seq = 3"),
            vec![Ok(1), Ok(2), Err((3, 3, MISSING)), Err((4, 4, CHANGED)), Ok(5)],
        ),
        (
            format!("DELETE FROM journal WHERE {OF_STREAM} AND seq IN (1, 2)"),
            vec![Err((1, 2, MISSING)), Err((3, 3, CHANGED)), Ok(4), Ok(5)],
        ),
        (
            format!("DELETE FROM journal WHERE {OF_STREAM} AND seq >= 4"),
            vec![Ok(1), Ok(2), Ok(3), Err((4, 5, MISSING))],
        ),
        (format!("DELETE FROM journal WHERE {OF_STREAM}"), vec![Err((1, 5, MISSING))]),
        (
            format!("UPDATE journal SET hash = NULL WHERE {OF_STREAM}"),
            vec![Ok(1), Ok(2), Ok(3), Ok(4), Err((5, 5, "it has no checksum"))],
        ),
    ] {
        let world = World::new();
        let store = world.open();
        let (broken, sound) = (task(&store).await, task(&store).await);
        database(&world).execute(&change, [broken.to_string()]).unwrap();
        for limit in [1, 2, 5, 100] {
            assert_eq!(places(&store, broken, limit), expected, "{limit}: {change}");
        }
        assert_eq!(places(&store, sound, 2), [Ok(1), Ok(2), Ok(3), Ok(4), Ok(5)]);
    }
}

/// What was done would be done again by a task whose tables are made from a shorter journal.
#[tokio::test]
async fn tables_are_not_made_from_a_journal_that_was_cut() {
    for (change, seq, problem) in [
        (format!("DELETE FROM journal WHERE {OF_STREAM} AND seq >= 4"), 4, "it is missing"),
        (format!("DELETE FROM journal WHERE {OF_STREAM}"), 1, "it is missing"),
        (format!("UPDATE journal SET hash = NULL WHERE {OF_STREAM}"), 5, "it has no checksum"),
    ] {
        let world = World::new();
        let store = world.open();
        let (broken, _sound) = (task(&store).await, task(&store).await);
        let session = store.tasks().get(broken).unwrap().unwrap().session_id;
        database(&world).execute(&change, [broken.to_string()]).unwrap();
        let expected = format!("event {seq} of `{broken}` is damaged: {problem}");
        let words = || {
            let found = store.projections().verify().unwrap();
            let is_of_session = |word: &String| word.contains(&session.to_string());
            let words = found.iter().map(ToString::to_string);
            words.filter(|word| !is_of_session(word)).collect::<Vec<_>>()
        };
        assert_eq!(words(), [&*expected], "{change}");
        assert_eq!(seq_of(&store.projections().rebuild().await.unwrap_err()), seq, "{change}");
        assert_eq!(words(), [&*expected], "{change}");
    }
}

#[tokio::test]
async fn a_row_that_counts_too_many_events_is_made_again() {
    let world = World::new();
    let store = world.open();
    let task = task(&store).await;
    let change = "UPDATE tasks SET last_seq = 9 WHERE id = ?1";
    database(&world).execute(change, [task.to_string()]).unwrap();
    store.projections().rebuild().await.unwrap();
    assert_eq!(store.projections().verify().unwrap(), []);
}

#[tokio::test]
async fn every_damaged_task_is_named() {
    let world = World::new();
    let store = world.open();
    let (first, second, sound) = (task(&store).await, task(&store).await, task(&store).await);
    let database = database(&world);
    for task in [first, second] {
        let sql = format!("UPDATE journal SET body = '{{}}' WHERE {OF_STREAM} AND seq = 2");
        database.execute(&sql, [task.to_string()]).unwrap();
    }
    let found = store.projections().verify().unwrap();
    let words: Vec<_> = found.iter().map(ToString::to_string).collect();
    let expected = [first, second]
        .map(|task| format!("event 2 of `{task}` is damaged: it does not match its checksum"));
    assert_eq!(words, expected);
    let owner = store.owners().own(sound).await.unwrap();
    owner.append(at(2), vec![reply("b")], Level::Written).await.unwrap();
}

#[tokio::test]
async fn events_from_before_checksums_are_read_and_continued() {
    let world = World::new();
    let store = world.open();
    let task = task(&store).await;
    drop(store);
    database(&world)
        .execute_batch(
            "UPDATE journal SET hash = NULL; UPDATE tasks SET last_hash = NULL;
             UPDATE sessions SET last_hash = NULL;",
        )
        .unwrap();
    let store = world.open();
    assert_eq!(store.journal().of(task).unwrap().len(), 5);
    let owner = store.owners().own(task).await.unwrap();
    owner.append(at(2), vec![reply("b"), request()], Level::Written).await.unwrap();
    assert_eq!(store.journal().of(task).unwrap().len(), 7);
    assert_eq!(store.projections().verify().unwrap(), []);
    database(&world).execute("UPDATE journal SET hash = NULL WHERE seq = 7", []).unwrap();
    assert_eq!(seq_of(&store.journal().of(task).unwrap_err()), 7);
}

#[tokio::test]
async fn events_from_before_streams_had_numbers_are_read_and_continued() {
    let world = World::new();
    let store = world.open();
    let (first, removed) = (task(&store).await, task(&store).await);
    let before = store.journal().of(first).unwrap();
    let end = store.journal().end().unwrap();
    drop(store);
    let older = database(&world);
    older.execute_batch(crate::world::EVENTS_OF_VERSION_14).unwrap();
    older.execute("DELETE FROM events WHERE stream = ?1", [removed.to_string()]).unwrap();
    older.execute("DELETE FROM tasks WHERE id = ?1", [removed.to_string()]).unwrap();
    drop(older);
    let store = world.open();
    assert_eq!(store.journal().of(first).unwrap(), before);
    let owner = store.owners().own(first).await.unwrap();
    let added = owner.append(at(2), vec![reply("b")], Level::Written).await.unwrap();
    assert_eq!((added[0].pos, added[0].seq), (end + 1, 6));
    assert_eq!(store.journal().of(first).unwrap().len(), 6);
    let found = store.projections().verify().unwrap();
    let is_event = |one: &Difference| matches!(one, Difference::Event { .. });
    assert!(!found.iter().any(is_event), "{found:?}");
}

#[tokio::test]
async fn the_prompt_of_many_tasks_is_stored_once() {
    let world = World::new();
    let store = world.open();
    let prompt =
        format!("# You\n{}\n# Work\n{}", "are an agent. ".repeat(50), "in turns. ".repeat(50));
    let mut tasks = Vec::new();
    for number in 0..5 {
        let task = store.tasks().create(at(0), created()).await.unwrap().task();
        let own = format!("{prompt}\n# Here\ntask {number}");
        let owner = store.owners().own(task).await.unwrap();
        let kept = owner.append(at(1), vec![begin(task, &own)], Level::Written).await.unwrap();
        assert_eq!(store.journal().of(task).unwrap()[1..], kept, "readers see it whole");
        tasks.push(task);
    }
    let bytes = |table: &str| -> i64 {
        let sql = format!("SELECT sum(length(body)) FROM {table}");
        database(&world).query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    let once = i64::try_from(prompt.len()).unwrap();
    assert!(bytes("contents") < 3 * once, "{}", bytes("contents"));
    assert_eq!(store.projections().verify().unwrap(), []);
    store.projections().rebuild().await.unwrap();
    database(&world)
        .execute("UPDATE contents SET body = replace(body, 'agent', 'Agent')", [])
        .unwrap();
    let error = store.journal().of(tasks[0]).unwrap_err();
    assert_eq!(seq_of(&error), 2, "{error}");
    let found = store.projections().verify().unwrap();
    assert!(
        found.iter().any(|difference| difference.to_string().contains("its prompt")),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_damaged_table_or_index_is_named_at_the_start() {
    let world = World::new();
    let store = world.open();
    task(&store).await;
    drop(store);
    let path = world.dir.path().join("windlass.db");
    let whole = fs::read(&path).unwrap();
    let roots: Vec<(String, i64)> = {
        let database = database(&world);
        let sql = "SELECT name, rootpage FROM sqlite_schema WHERE name IN ('journal', 'tasks', \
                   'streams', 'sqlite_autoindex_journal_1', 'task_scheduler_ready', 'injections')";
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    assert_eq!(roots.len(), 6);
    for (name, page) in roots {
        let mut bytes = whole.clone();
        let page = usize::try_from(page).unwrap();
        bytes[(page - 1) * 4096..page * 4096].fill(0xAB);
        fs::write(&path, bytes).unwrap();
        let error = Store::open(world.dir.path(), Options::default()).err().unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
        let words = windlass_core::text::with_causes(&error);
        assert!(words.contains(&name), "{name}: {words}");
    }
}

#[tokio::test]
async fn an_emptied_database_is_refused() {
    let world = World::new();
    drop(world.open());
    let path = world.dir.path().join("windlass.db");
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(world.dir.path().join(format!("windlass.db{suffix}")));
    }
    fs::write(&path, "").unwrap();
    let error = Store::open(world.dir.path(), Options::default()).err().unwrap();
    assert!(matches!(error, Error::Emptied { .. }), "{error:?}");
    fs::remove_file(&path).unwrap();
    drop(world.open());
}

#[tokio::test]
async fn a_page_in_the_middle_is_found_and_its_task_named() {
    let world = World::new();
    let store = world.open();
    let tasks = [task(&store).await, task(&store).await];
    for task in tasks {
        let owner = store.owners().own(task).await.unwrap();
        let long = (0..20).map(|_| reply(&"x".repeat(3000))).collect();
        owner.append(at(2), long, Level::Written).await.unwrap();
    }
    drop(store);
    let path = world.dir.path().join("windlass.db");
    let mut bytes = fs::read(&path).unwrap();
    let page = bytes.chunks(4096).rposition(|page| page[0] == 13 && page.ends_with(b"x\"}"));
    let last = page.unwrap_or(bytes.len() / 4096 - 1);
    bytes[last * 4096..(last + 1) * 4096].fill(0xAB);
    fs::write(&path, bytes).unwrap();
    let store = world.open();
    let found = store.projections().verify().unwrap();
    assert!(!found.is_empty());
    assert!(tasks.iter().any(|task| store.journal().of(*task).is_ok()), "{found:?}");
    assert!(store.projections().check_pages(std::time::Duration::from_secs(60)).is_err());
}
