//! What tools print: cut in the database, whole in a file, gone after a week.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use windlass_core::status::TaskStatus;
use windlass_store::outputs::{
    HARD_CAP_BYTES, MAX_OUTPUT_SIZE, Origin, Outputs, Stream, TruncatedOutput,
};
use windlass_store::{Error, Level, Store};

use crate::world::{World, at, created, moved, request};

fn origin(command_id: &str, stream: Stream) -> Origin {
    Origin { command_id: command_id.to_owned(), stream, task: None }
}

async fn keep(store: &Store, bytes: &[u8]) -> TruncatedOutput {
    let origin = origin("cmd_abc123", Stream::Stdout);
    store.outputs().write(origin, at(0), bytes).await.unwrap()
}

fn whole(outputs: &Outputs) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut reader = outputs.open("cmd_abc123", Stream::Stdout).unwrap();
    assert!(!reader.is_empty().unwrap());
    reader.read_to_end(&mut bytes).unwrap();
    bytes
}

fn meta(world: &World) -> String {
    let database = rusqlite::Connection::open(world.dir.path().join("windlass.db")).unwrap();
    let find = "SELECT content, meta FROM spawn_logs WHERE command_id = 'cmd_abc123'";
    database.query_row(find, [], |row| row.get(1)).unwrap()
}

/// AX-013, AX-028, AX-043, AX-078
#[tokio::test]
async fn an_output_at_the_limit_is_kept_as_it_is() {
    let world = World::new();
    let store = world.open();
    let bytes = vec![b'x'; MAX_OUTPUT_SIZE];
    let output = keep(&store, &bytes).await;
    assert_eq!(output.content.as_bytes(), bytes);
    assert_eq!((output.truncated, output.full_output_path), (false, None));
    assert_eq!(meta(&world), r#"{"original_size":30720,"truncated":false}"#);
    assert_eq!(fs::read_dir(store.dir().outputs()).unwrap().count(), 0);
    assert_eq!(whole(&store.outputs()), bytes);
}

/// AX-002, AX-006, AX-014, AX-027, AX-028, AX-041, AX-042, AX-085, AX-088, AX-103
#[tokio::test]
async fn an_output_over_the_limit_is_cut_and_its_file_named() {
    let world = World::new();
    let store = world.open();
    let bytes = vec![b'x'; MAX_OUTPUT_SIZE + 1];
    let output = keep(&store, &bytes).await;
    let path = store.dir().outputs().join("cmd_abc123_stdout.txt");
    let notice =
        format!("\n\n[Output truncated at 30KB. Full output (30721 bytes): {}]", path.display());
    assert_eq!(output.content, "x".repeat(MAX_OUTPUT_SIZE) + &notice);
    assert_eq!(output.full_output_path.as_deref(), Some(path.as_path()));
    let expected = serde_json::json!({
        "truncated": true,
        "full_output_path": path.to_str(),
        "original_size": 30721,
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&meta(&world)).unwrap(), expected);
    assert_eq!(store.outputs().get("cmd_abc123", Stream::Stdout).unwrap(), Some(output));
}

/// AX-029, AX-038, AX-039, AX-040, AX-086, AX-104, AX-111
#[tokio::test]
async fn each_stream_has_its_file_in_a_directory_made_when_absent() {
    let world = World::new();
    let store = world.open();
    fs::remove_dir(store.dir().outputs()).unwrap();
    let bytes: Vec<u8> = (0..102_400u32).map(|index| b'a' + (index % 26) as u8).collect();
    for stream in [Stream::Stdout, Stream::Stderr] {
        let origin = origin("cmd_abc123", stream);
        let output = store.outputs().write(origin, at(0), &bytes).await.unwrap();
        assert_eq!(output.original_size, 102_400);
        assert_eq!(fs::read(output.full_output_path.unwrap()).unwrap(), bytes);
    }
    let mut names: Vec<_> = fs::read_dir(store.dir().outputs())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["cmd_abc123_stderr.txt", "cmd_abc123_stdout.txt"]);
}

#[tokio::test]
async fn a_character_is_never_cut_and_the_file_keeps_every_byte() {
    let world = World::new();
    let store = world.open();
    let text = "x".to_owned() + &"é".repeat(MAX_OUTPUT_SIZE);
    let output = keep(&store, text.as_bytes()).await;
    let kept = output.content.split("\n\n[").next().unwrap();
    assert_eq!(kept.len(), MAX_OUTPUT_SIZE - 1);
    assert!(text.starts_with(kept));
    let garbage = vec![0xFF; MAX_OUTPUT_SIZE];
    let output = keep(&store, &garbage).await;
    assert!(output.truncated && output.content.len() < MAX_OUTPUT_SIZE + 300);
    assert_eq!(whole(&store.outputs()), garbage);
    let cut = keep(&store, b"ab\xE2\x82").await;
    assert_eq!(cut.content, "ab\u{FFFD}");
}

#[tokio::test]
async fn a_stream_over_the_hard_cap_stops_being_stored_and_says_so() {
    let world = World::new();
    let store = world.open();
    let mut writer = store.outputs().writer(origin("cmd_abc123", Stream::Stdout)).unwrap();
    let piece = vec![b'x'; 1024 * 1024];
    let pieces = HARD_CAP_BYTES / piece.len() as u64 + 2;
    for _ in 0..pieces {
        writer.write(&piece).unwrap();
    }
    let size = writer.size();
    let output = writer.finish(at(0)).await.unwrap();
    assert_eq!(output.original_size, size);
    let said = "[Output over the limit: the first 64 MiB of 69206016 bytes were stored]";
    assert!(output.content.ends_with(said), "{}", &output.content[MAX_OUTPUT_SIZE..]);
    let file = fs::metadata(output.full_output_path.unwrap()).unwrap().len();
    assert_eq!(file, HARD_CAP_BYTES + said.len() as u64 + 2);
}

/// AX-080
#[tokio::test]
async fn files_are_cleaned_after_seven_days() {
    let world = World::new();
    let store = world.open();
    let outputs = store.outputs();
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let bytes = vec![b'x'; MAX_OUTPUT_SIZE + 1];
    for (id, age) in [("old", week + Duration::from_secs(1)), ("young", week)] {
        let output = outputs.write(origin(id, Stream::Stdout), at(0), &bytes).await.unwrap();
        let file = File::options().write(true).open(output.full_output_path.unwrap()).unwrap();
        file.set_modified(written - age).unwrap();
    }
    let foreign = store.dir().outputs().join("notes.md");
    fs::write(&foreign, "mine").unwrap();
    let long_ago = written - week * 2;
    File::options().write(true).open(&foreign).unwrap().set_modified(long_ago).unwrap();

    let cleaned = outputs.clean(Timestamp::try_from(written).unwrap()).unwrap();
    assert_eq!((cleaned.files, cleaned.bytes), (1, bytes.len() as u64));
    assert!(outputs.open("young", Stream::Stdout).is_ok());
    let gone = outputs.open("old", Stream::Stdout).err().unwrap();
    assert_eq!(gone.to_string(), "there is no output `old`");
    assert!(foreign.exists());
}

/// AX-079
#[tokio::test]
async fn a_task_resumes_without_its_outputs() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created()).await.unwrap().task();
    let bytes = vec![b'x'; MAX_OUTPUT_SIZE + 1];
    let origin = Origin { task: Some(task), ..origin("cmd_abc123", Stream::Stdout) };
    store.outputs().write(origin, at(0), &bytes).await.unwrap();
    drop(store);
    fs::remove_dir_all(world.dir.path().join("outputs")).unwrap();
    let store = world.open();
    let owner = store.owners().own(task).await.unwrap();
    owner.append(at(1), vec![request()], Level::Synced).await.unwrap();
    assert_eq!(store.journal().of(task).unwrap().len(), 2);
    let gone = store.outputs().open("cmd_abc123", Stream::Stdout);
    assert!(matches!(gone, Err(Error::UnknownOutput(_))));
}

#[tokio::test]
async fn an_output_is_reached_by_id_and_never_by_path() {
    let world = World::new();
    let store = world.open();
    for id in ["", "../windlass.db", "a/b", "a.b", "a\0b", &"x".repeat(129)] {
        let error = store.outputs().open(id, Stream::Stdout).err().unwrap();
        assert!(matches!(&error, Error::BadOutputId(given) if given == id), "{error:?}");
        assert!(store.outputs().writer(origin(id, Stream::Stdout)).is_err());
    }
    let path = store.dir().outputs().join("link_stdout.txt");
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    assert!(store.outputs().open("link", Stream::Stdout).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// However it is cut into pieces, an output comes to the same.
    #[test]
    fn pieces_make_no_difference(
        unit in proptest::collection::vec(any::<u8>(), 1..40),
        times in 1usize..2000,
        piece in 1usize..5000,
    ) {
        let bytes = unit.repeat(times);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let store = world.open();
            let at_once = keep(&store, &bytes).await;
            let mut writer = store.outputs().writer(origin("cmd_abc123", Stream::Stdout)).unwrap();
            for piece in bytes.chunks(piece) {
                writer.write(piece).unwrap();
            }
            assert_eq!(writer.finish(at(0)).await.unwrap(), at_once);
            if at_once.truncated {
                assert_eq!(whole(&store.outputs()), bytes);
                assert!(at_once.content.len() <= MAX_OUTPUT_SIZE + 300);
            } else {
                assert_eq!(at_once.content, String::from_utf8_lossy(&bytes));
            }
        });
    }
}

/// A short output that is not text is kept byte for byte; the row shows what can be shown of it.
#[tokio::test]
async fn bytes_that_are_not_text_are_kept_as_they_are() {
    let world = World::new();
    let store = world.open();
    let output = keep(&store, b"a\xff\xfeb").await;
    assert_eq!((output.content.as_str(), output.truncated), ("a\u{fffd}\u{fffd}b", false));
    assert_eq!(whole(&store.outputs()), b"a\xff\xfeb");
}

/// ES-322: a trace is made again from the journal, and an empty workspace when it is needed.
#[tokio::test]
async fn unused_workspaces_go_with_old_traces() {
    let world = World::new();
    let store = world.open();
    let now = Timestamp::now();
    let mut places = Vec::new();
    for (has_file, has_ended) in [(false, true), (true, true), (false, false)] {
        let task = store.tasks().create(at(0), created()).await.unwrap().task();
        if has_ended {
            let owner = store.owners().own(task).await.unwrap();
            let moves = vec![
                moved(TaskStatus::Todo, TaskStatus::Running),
                moved(TaskStatus::Running, TaskStatus::Done),
            ];
            owner.append(at(1), moves, Level::Written).await.unwrap();
        }
        let trace = store.dir().traces().join(task.to_string());
        fs::create_dir_all(&trace).unwrap();
        fs::write(trace.join("one.jsonl"), "{}").unwrap();
        let workspace = store.dir().workspaces().join(task.to_string());
        for directory in [".memo", "output", ".trace"] {
            fs::create_dir_all(workspace.join(directory)).unwrap();
        }
        std::os::unix::fs::symlink(trace.join("one.jsonl"), workspace.join(".trace/one.jsonl"))
            .unwrap();
        if has_file {
            fs::write(workspace.join("output/report.md"), "mine").unwrap();
        }
        places.push((trace, workspace));
    }
    let there = |places: &[(PathBuf, PathBuf)]| -> Vec<(bool, bool)> {
        places.iter().map(|(trace, workspace)| (trace.exists(), workspace.exists())).collect()
    };
    store.outputs().clean(now).unwrap();
    assert_eq!(there(&places), [(true, true); 3]);
    store.outputs().clean(now + SignedDuration::from_hours(8 * 24)).unwrap();
    assert_eq!(there(&places), [(false, false), (false, true), (true, true)]);
    assert!(places[1].1.join("output/report.md").exists());
    assert!(places[2].1.join(".trace/one.jsonl").is_symlink());
}
