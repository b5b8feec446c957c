//! Opening a data directory, and what is said when it cannot be used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use windlass_store::outputs::Stream;
use windlass_store::{Error, Level, Options, Store};

use crate::process::{Other, command, command_of};
use crate::world::{World, at, created, reply};

fn error_of(dir: &Path) -> Error {
    Store::open(dir, Options::default()).err().unwrap()
}

#[tokio::test]
async fn a_missing_directory_is_made_private() {
    let world = World::new();
    let dir = world.dir.path().join("deep/data");
    let store = Store::open(&dir, Options::default()).unwrap();
    let mode = fs::metadata(&dir).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(store.dir().locks().is_dir() && store.dir().outputs().is_dir());
    assert_eq!(store.dir().token(), fs::canonicalize(&dir).unwrap().join("token"));
}

#[test]
fn a_directory_with_other_things_in_it_keeps_its_mode() {
    let world = World::new();
    let dir = world.dir.path();
    fs::write(dir.join("notes.md"), "mine").unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    drop(world.open());
    assert_eq!(fs::metadata(dir).unwrap().permissions().mode() & 0o777, 0o755);
    let database = fs::metadata(dir.join("windlass.db")).unwrap();
    assert_eq!(database.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn what_was_stored_is_there_after_reopening() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let before = store.journal().of(task).unwrap();
    drop(store);
    assert_eq!(world.open().journal().of(task).unwrap(), before);
}

#[test]
fn many_can_open_a_new_directory_at_once() {
    let world = World::new();
    let dir = world.dir.path();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| Store::open(dir, Options::default()).unwrap());
        }
    });
}

#[test]
fn a_file_that_is_not_a_database_is_left_alone() {
    let world = World::new();
    let path = world.dir.path().join("windlass.db");
    let text = "these are my notes, please keep them. ".repeat(100);
    fs::write(&path, &text).unwrap();
    assert!(matches!(error_of(world.dir.path()), Error::NotADatabase { .. }));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn another_programs_database_is_left_alone() {
    let world = World::new();
    let path = world.dir.path().join("windlass.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE songs (title)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    assert!(matches!(error_of(world.dir.path()), Error::NotADatabase { .. }));
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A database as version 3 left it, with what two commands printed.
#[test]
fn an_older_database_is_brought_up_to_date_and_keeps_its_outputs() {
    let world = World::new();
    let path = world.dir.path().join("windlass.db");
    let older = rusqlite::Connection::open(&path).unwrap();
    for migration in [
        include_str!("../../src/migrations/0001_journal.sql"),
        include_str!("../../src/migrations/0002_routing.sql"),
        include_str!("../../src/migrations/0003_bus.sql"),
    ] {
        older.execute_batch(migration).unwrap();
    }
    older
        .execute_batch(
            "PRAGMA application_id = 0x57494E44; PRAGMA user_version = 3;
             INSERT INTO spawn_logs (command_id, stream, task_id, content, meta, at) VALUES
                 ('call_1', 'stdout', NULL, 'first', '{\"original_size\":5}', '2026-01-01T00:00:00Z'),
                 ('call_1', 'stderr', NULL, '', '{}', '2026-01-01T00:00:00Z'),
                 ('call_2', 'stdout', NULL, 'second', '{\"original_size\":6}', '2026-01-01T00:00:00Z');",
        )
        .unwrap();
    drop(older);
    let outputs = world.open().outputs();
    for (command, content) in [("call_1", "first"), ("call_2", "second")] {
        let kept = outputs.get(command, Stream::Stdout).unwrap().unwrap();
        assert_eq!((kept.content.as_str(), kept.original_size), (content, content.len() as u64));
    }
    assert_eq!(outputs.get("call_1", Stream::Stderr).unwrap().unwrap().content, "");
}

#[test]
fn a_newer_database_is_refused_and_both_versions_named() {
    let world = World::new();
    drop(world.open());
    let path = fs::canonicalize(world.dir.path()).unwrap().join("windlass.db");
    let later = rusqlite::Connection::open(&path).unwrap();
    later.pragma_update(None, "user_version", 99).unwrap();
    drop(later);
    assert_eq!(
        error_of(world.dir.path()).to_string(),
        format!(
            "database `{}` has version 99, and this program knows versions up to {}",
            path.display(),
            windlass_store::SCHEMA_VERSION
        )
    );
}

#[tokio::test]
async fn a_damaged_database_is_reported_as_damaged() {
    let world = World::new();
    let store = world.open();
    for _ in 0..50 {
        store.tasks().create(at(0), created()).await.unwrap();
    }
    drop(store);
    let path = world.dir.path().join("windlass.db");
    let mut bytes = fs::read(&path).unwrap();
    // Every page but the first, which says what the file is.
    bytes[4096..].fill(0xAB);
    fs::write(&path, bytes).unwrap();
    let error = match Store::open(world.dir.path(), Options::default()) {
        Err(error) => error,
        Ok(store) => store.tasks().list(&Default::default()).unwrap_err(),
    };
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
}

#[tokio::test]
async fn a_truncated_database_is_reported_as_damaged() {
    let world = World::new();
    drop(world.open());
    let path = world.dir.path().join("windlass.db");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = match Store::open(world.dir.path(), Options::default()) {
        Err(error) => error,
        Ok(store) => store.tasks().list(&Default::default()).unwrap_err(),
    };
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
}

#[test]
fn a_file_in_place_of_the_directory_is_named() {
    let world = World::new();
    let path = world.dir.path().join("data");
    fs::write(&path, "x").unwrap();
    let error = error_of(&path);
    assert!(matches!(&error, Error::Directory { .. }), "{error:?}");
}

#[tokio::test]
async fn a_full_store_fails_the_writer_and_loses_nothing() {
    let world = World::new();
    let task = {
        let store = world.open();
        store.tasks().create(at(0), created()).await.unwrap().task()
    };
    let options = Options { max_pages: Some(90), ..Options::default() };
    let store = Store::open(world.dir.path(), options).unwrap();
    let owner = store.owners().own(task).await.unwrap();
    let mut kept = 1;
    let error = loop {
        let events = vec![reply(&"x".repeat(5_000)), reply(&"y".repeat(5_000))];
        match owner.append(at(1), events, Level::Written).await {
            Ok(_) => kept += 2,
            Err(error) => break error,
        }
        assert!(kept < 200, "the limit was never met");
    };
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert_eq!(store.journal().of(task).unwrap().len(), kept);
    assert!(store.projections().verify().unwrap().is_empty());
    // The writer continues: it accepts what still fits, and everything once there is room again.
    drop((owner, store));
    let store = world.open();
    let owner = store.owners().own(task).await.unwrap();
    owner.append(at(2), vec![reply("z")], Level::Synced).await.unwrap();
    assert_eq!(store.journal().of(task).unwrap().len(), kept + 1);
}

/// Opens the directory as somebody who is bound by file permissions, and returns what was said.
fn open_as_ordinary_user(dir: &Path) -> String {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = home.path().join("it");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    let mut command = command_of(binary, dir, "open");
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    command.current_dir("/");
    let said = Other::start(command).hear().unwrap();
    // So that the directory can be removed again.
    let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
    said
}

#[test]
fn a_directory_that_is_not_writable_is_named() {
    let world = World::new();
    let dir = fs::canonicalize(world.dir.path()).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o555)).unwrap();
    let said = open_as_ordinary_user(&dir);
    assert_eq!(said, format!("data directory `{}` is not writable", dir.display()));
}

/// What was stored can be looked at; nothing can be written.
#[tokio::test]
async fn a_read_only_database_can_be_looked_at() {
    let world = World::new();
    let store = world.open();
    store.tasks().create(at(0), created()).await.unwrap();
    drop(store);
    let dir = fs::canonicalize(world.dir.path()).unwrap();
    let path = dir.join("windlass.db");
    for (dir_mode, file_mode) in [(0o555, 0o644), (0o777, 0o444)] {
        for part in ["locks", "outputs"] {
            fs::set_permissions(dir.join(part), fs::Permissions::from_mode(0o777)).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(file_mode)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(dir_mode)).unwrap();
        let said = open_as_ordinary_user(&dir);
        let cause = match dir_mode {
            0o555 => format!(": `{}` is not writable", dir.display()),
            _ => String::new(),
        };
        assert_eq!(said, format!("1 task; database `{}` is read-only{cause}", path.display()));
    }
}

/// A process that read the database while it was read-only has left the file beside it read-only too.
#[tokio::test]
async fn a_database_made_writable_again_can_be_written() {
    let world = World::new();
    let store = world.open();
    store.tasks().create(at(0), created()).await.unwrap();
    drop(store);
    let dir = fs::canonicalize(world.dir.path()).unwrap();
    let shm = dir.join("windlass.db-shm");
    fs::write(&shm, "").unwrap();
    fs::set_permissions(&shm, fs::Permissions::from_mode(0o400)).unwrap();
    if rustix::process::geteuid().is_root() {
        for part in ["", "windlass.db", "windlass.db-shm", "locks", "outputs"] {
            std::os::unix::fs::chown(dir.join(part), Some(65534), Some(65534)).unwrap();
        }
    }
    assert_eq!(open_as_ordinary_user(&dir), "1 task; another was written");
}

/// A task that fills the disk can be cancelled and parked: space is held back for that.
#[test]
fn a_full_disk_leaves_room_to_end_tasks() {
    let world = World::new();
    let dir = world.dir.path();
    let play = command(dir, "fill");
    let mut alone = std::process::Command::new("unshare");
    alone.args(["--map-root-user", "--mount", "sh", "-c"]);
    alone.arg("mount -t tmpfs -o size=12m none \"$0\" && exec \"$@\"").arg(dir);
    alone.arg(play.get_program()).args(play.get_args());
    for (name, value) in play.get_envs() {
        alone.env(name, value.unwrap());
    }
    assert_eq!(Other::start(alone).hear().unwrap(), "Ok(New) Ok(1)");
}
