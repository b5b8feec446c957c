//! What lists and pages read.

use windlass_core::command::{Deliverable, DeliverableType};
use windlass_core::event::{Driver, Event, TaskCreated};
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus::{Done, Failed, Paused, Retrying, Running, Todo};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Error, Filter, Level, RuntimeRow, SessionFilter, Store};

use crate::world::{World, at, child_of, created, created_at, moved, reply};

async fn move_to(store: &Store, task: TaskId, moves: &[(TaskStatus, TaskStatus)]) {
    let owner = store.owners().own(task).await.unwrap();
    for (index, (from, to)) in moves.iter().enumerate() {
        let at = at(10 + index as i64);
        owner.append(at, vec![moved(*from, *to)], Level::Written).await.unwrap();
    }
}

/// ES-078, MS-132, MS-134, MS-135, MS-141, MS-142
#[tokio::test]
async fn a_task_row_follows_its_journal() {
    let world = World::new();
    let store = world.open();
    let mut first = created();
    first.cost_budget = Some(2.5);
    first.command.goal = "fix the build\nthen rest".to_owned();
    let task = store.tasks().create(at(0), first).await.unwrap().task();
    let row = store.tasks().get(task).unwrap().unwrap();
    assert_eq!((row.status, row.retry_count, row.max_retries), (Todo, 0, 3));
    assert_eq!((row.cost_budget, row.cost_spent), (Some(2.5), 0.0));
    assert_eq!((row.created_at, row.started_at, row.completed_at), (at(0), None, None));
    assert_eq!(row.goal_summary(40), "fix the build…");

    let moves = [(Todo, Running), (Running, Failed)];
    move_to(&store, task, &moves).await;
    assert_eq!(store.tasks().get(task).unwrap().unwrap().completed_at, Some(at(11)));
    move_to(&store, task, &[(Failed, Retrying), (Retrying, Running), (Running, Paused)]).await;
    let owner = store.owners().own(task).await.unwrap();
    owner.append(at(20), vec![reply("a"), reply("b")], Level::Written).await.unwrap();
    let row = store.tasks().get(task).unwrap().unwrap();
    assert_eq!((row.status, row.reason, row.retry_count), (Paused, StatusReason::User, 1));
    assert_eq!((row.started_at, row.completed_at), (Some(at(10)), None));
    assert_eq!((row.paused_at, row.updated_at), (Some(at(12)), at(20)));
    assert_eq!((row.turns, row.cost_spent, row.usage.total_tokens), (2, 0.5, 30));
    assert_eq!(row.last_seq, 8);
    let moves: Vec<_> = store
        .tasks()
        .transitions(task)
        .unwrap()
        .iter()
        .map(|m| format!("{} → {}", m.from, m.to))
        .collect();
    insta::assert_snapshot!(moves.join("\n"), @r"
    todo → running
    running → failed
    failed → retrying
    retrying → running
    running → paused
    ");
}

#[tokio::test]
async fn a_list_has_the_tasks_that_match_the_newest_first() {
    let world = World::new();
    let store = world.open();
    let mut ids = Vec::new();
    for second in 0..4 {
        let mut created = created_at(at(second));
        if second == 1 {
            created.driver = Driver::Service;
            created.workspace = "/elsewhere".to_owned();
        }
        ids.push(store.tasks().create(at(second), created).await.unwrap().task());
    }
    move_to(&store, ids[0], &[(Todo, Running), (Running, Done)]).await;
    let owner = store.owners().own(ids[2]).await.unwrap();
    let child = owner.create_child(at(9), child_of(ids[2], ids[2])).await.unwrap().task();
    let list = |filter: Filter| -> Vec<TaskId> {
        store.tasks().list(&filter).unwrap().into_iter().map(|row| row.id).collect()
    };
    assert_eq!(list(Filter::default()), [child, ids[3], ids[2], ids[1], ids[0]]);
    assert_eq!(list(Filter { limit: Some(2), ..Filter::default() }), [child, ids[3]]);
    assert_eq!(
        list(Filter { live: true, roots: true, ..Filter::default() }),
        [ids[3], ids[2], ids[1]]
    );
    assert_eq!(list(Filter { statuses: vec![Done], ..Filter::default() }), [ids[0]]);
    assert_eq!(list(Filter { root: Some(ids[2]), ..Filter::default() }), [child, ids[2]]);
    assert_eq!(list(Filter { parent: Some(ids[2]), ..Filter::default() }), [child]);
    assert_eq!(list(Filter { driver: Some(Driver::Service), ..Filter::default() }), [ids[1]]);
    let workspace = Some("/elsewhere".to_owned());
    assert_eq!(list(Filter { workspace, live: true, ..Filter::default() }), [ids[1]]);
}

/// MS-136: nothing writes the checkpoint and the claim yet; what they hold is read.
#[tokio::test]
async fn a_row_has_checkpoint_claim_and_next_time_with_zone() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let database = rusqlite::Connection::open(world.dir.path().join("windlass.db")).unwrap();
    let next = "2026-11-15T09:00:00+00:00[UTC]";
    let update =
        "UPDATE tasks SET next_action_at = ?1, checkpoint_ref = 'refs/a', intent_claim = ?2";
    database.execute(update, (next, "I will edit src/foo.ts lines 10-50")).unwrap();
    let row = store.tasks().get(task).unwrap().unwrap();
    assert_eq!(row.next_action_at.unwrap().to_string(), next);
    assert_eq!(row.checkpoint_ref.as_deref(), Some("refs/a"));
    assert_eq!(row.intent_claim.as_deref(), Some("I will edit src/foo.ts lines 10-50"));
    database.execute("UPDATE tasks SET next_action_at = 'soon'", []).unwrap();
    let error = store.tasks().get(task).unwrap_err();
    assert_eq!(error.to_string(), "table `tasks` holds `soon`, which cannot be read");
}

/// ES-077
#[tokio::test]
async fn a_session_names_its_tasks_and_the_active_one() {
    let world = World::new();
    let store = world.open();
    let first = created_at(at(0));
    let session = first.command.session_id;
    let one = store.tasks().create(at(0), first).await.unwrap().task();
    let mut second = created_at(at(1));
    second.command.session_id = session;
    let two = store.tasks().create(at(1), second).await.unwrap().task();
    let row = store.sessions().get(session).unwrap().unwrap();
    assert_eq!((row.tasks.as_slice(), row.active_task_id), ([one, two].as_slice(), Some(two)));
    let active = || store.sessions().get(session).unwrap().unwrap().active_task_id;
    move_to(&store, two, &[(Todo, TaskStatus::Cancelled)]).await;
    assert_eq!(active(), Some(one), "the newest that still lives has the focus");
    move_to(&store, one, &[(Todo, TaskStatus::Cancelled)]).await;
    assert_eq!(active(), None);
    assert_eq!(store.sessions().newest(10).unwrap().len(), 1);
}

#[tokio::test]
async fn sessions_of_a_directory_are_found_among_newer_ones_elsewhere() {
    let world = World::new();
    let store = world.open();
    let (first, second) = (created_at(at(0)), created_at(at(1)));
    let (one, two) = (first.command.session_id, second.command.session_id);
    let early = store.tasks().create(at(0), first).await.unwrap().task();
    store.tasks().create(at(1), second).await.unwrap();
    for secs in 2..5 {
        let elsewhere = TaskCreated { workspace: "/other".to_owned(), ..created_at(at(secs)) };
        store.tasks().create(at(secs), elsewhere).await.unwrap();
    }
    let list = |workspace, archived, limit| -> Vec<_> {
        let rows = store.sessions().list(&SessionFilter { workspace, archived }, limit).unwrap();
        rows.into_iter().map(|row| row.id).collect()
    };
    assert_eq!(list(Some("/work"), false, 2), [two, one]);
    assert_eq!(list(None, false, 9).len(), 5);
    assert!(list(None, true, 9).is_empty());
    move_to(&store, early, &[(Todo, TaskStatus::Cancelled)]).await;
    assert_eq!(list(Some("/work"), false, 2), [one, two], "the last used is first");
}

/// MS-131
#[tokio::test]
async fn a_blocker_is_open_until_its_task_is_done() {
    let world = World::new();
    let store = world.open();
    let blocker = store.tasks().create(at(0), created()).await.unwrap().task();
    let nobody = TaskId::new(at(0));
    let mut blocked = created();
    blocked.dependency_blockers = vec![blocker, nobody];
    let task = store.tasks().create(at(1), blocked).await.unwrap().task();
    assert_eq!(store.tasks().open_blockers(task).unwrap(), [blocker, nobody]);
    move_to(&store, blocker, &[(Todo, Running), (Running, Done)]).await;
    assert_eq!(store.tasks().open_blockers(task).unwrap(), [nobody]);
    assert!(store.tasks().open_blockers(blocker).unwrap().is_empty());
    let among = [task, blocker, nobody].into();
    assert_eq!(store.tasks().finished_of(&among).unwrap(), [blocker].into());
}

#[tokio::test]
async fn any_unique_part_of_an_id_finds_it() {
    let world = World::new();
    let store = world.open();
    let one = store.tasks().create(at(0), created_at(at(0))).await.unwrap().task();
    let two = store.tasks().create(at(0), created_at(at(1))).await.unwrap().task();
    let text = one.to_string();
    for part in [&text[..], &text[5..], &text[20..], &text.to_lowercase()[22..]] {
        assert_eq!(store.ids().task(part).unwrap(), one, "{part}");
    }
    let error = store.ids().task(&text[..9]).unwrap_err();
    let Error::Ambiguous { candidates, .. } = &error else { panic!("{error}") };
    assert_eq!(candidates, &[two.to_string(), one.to_string()]);
    assert_eq!(error.to_string(), format!("`{}` matches several ids: {two}, {one}", &text[..9]));
    for unknown in ["", "*", "task_", "ses_0", "%", "ZZZZZZ", "../x", "ünknown"] {
        let error = store.ids().task(unknown).unwrap_err();
        assert_eq!(error.to_string(), format!("there is no task `{unknown}`"));
    }
    assert!(matches!(store.ids().question("ABC"), Err(Error::UnknownQuestion(_))));
}

#[tokio::test]
async fn the_last_version_of_a_deliverable_counts() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let owner = store.owners().own(task).await.unwrap();
    let deliverable = |path: &str, description: &str| Deliverable {
        filepath: path.to_owned(),
        description: description.to_owned(),
        kind: DeliverableType::Report,
        content: Some("text".to_owned()),
        size_bytes: Some(4),
    };
    let published = [("b.md", "old"), ("a.md", "other"), ("b.md", "new")]
        .map(|(path, text)| Event::DeliverablePublished(deliverable(path, text)));
    owner.append(at(1), published.to_vec(), Level::Written).await.unwrap();
    let found = store.tasks().deliverables(task).unwrap();
    assert_eq!(found, [deliverable("a.md", "other"), deliverable("b.md", "new")]);
}

/// MS-140
#[tokio::test]
async fn a_runtime_row_exists_while_the_task_runs() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let runtime = RuntimeRow {
        process_pid: 7,
        worktree_path: None,
        current_model: Some("test/model".to_owned()),
        context_usage_percent: Some(12.5),
        last_heartbeat_at: at(1),
    };
    store.owners().runtime().set(task, runtime.clone()).await.unwrap();
    let pid = runtime.process_pid;
    let stranger = store.owners().runtime().heartbeats(vec![task], pid + 1, at(3)).await.unwrap();
    assert_eq!(stranger, [task], "another process says nothing about it");
    let lost = store.owners().runtime().heartbeats(vec![task], pid, at(2)).await.unwrap();
    assert_eq!(lost, []);
    let beaten = RuntimeRow { last_heartbeat_at: at(2), ..runtime.clone() };
    assert_eq!(store.owners().runtime().get(task).unwrap(), Some(beaten));
    store.owners().runtime().clear(task, pid + 1).await.unwrap();
    assert!(store.owners().runtime().get(task).unwrap().is_some(), "nor does it remove it");
    store.owners().runtime().clear(task, pid).await.unwrap();
    assert_eq!(store.owners().runtime().get(task).unwrap(), None);
    store.owners().runtime().set(task, runtime.clone()).await.unwrap();
    move_to(&store, task, &[(Todo, TaskStatus::Cancelled)]).await;
    assert_eq!(store.owners().runtime().get(task).unwrap(), None);
    let nobody = TaskId::new(at(0));
    assert!(matches!(
        store.owners().runtime().set(nobody, runtime).await,
        Err(Error::UnknownTask(_))
    ));
}

/// MS-144: workers of a process say that they live; those of another process, and tasks without a worktree, say it themselves.
#[tokio::test]
async fn the_heartbeats_of_the_workers_of_a_process_advance() {
    let world = World::new();
    let store = world.open();
    let mut tasks = Vec::new();
    for (pid, worktree) in
        [(7, Some("/trees/a")), (7, Some("/trees/b")), (8, Some("/trees/c")), (7, None)]
    {
        let task = store.tasks().create(at(0), created()).await.unwrap().task();
        let runtime = RuntimeRow {
            process_pid: pid,
            worktree_path: worktree.map(str::to_owned),
            current_model: None,
            context_usage_percent: None,
            last_heartbeat_at: at(1),
        };
        store.owners().runtime().set(task, runtime).await.unwrap();
        tasks.push(task);
    }
    store.owners().runtime().beat_workers(7, at(5)).await.unwrap();
    let beats = tasks
        .iter()
        .map(|task| store.owners().runtime().get(*task).unwrap().unwrap().last_heartbeat_at);
    assert_eq!(beats.collect::<Vec<_>>(), [at(5), at(5), at(1), at(1)]);
    let workers = store.owners().runtime().workers().unwrap();
    let mut paths: Vec<_> = workers.into_iter().filter_map(|(_, row)| row.worktree_path).collect();
    paths.sort();
    assert_eq!(paths, ["/trees/a", "/trees/b", "/trees/c"]);
}
