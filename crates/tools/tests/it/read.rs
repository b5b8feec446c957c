//! `read`

use serde_json::json;
use windlass_core::outcome::{Fact, Recovery};
use windlass_tools::workspace::{Places, content_hash};

use crate::bench::Bench;

/// ES-185, ES-254
#[tokio::test]
async fn a_file_is_shown_with_line_numbers_and_its_version_is_known() {
    let mut bench = Bench::new();
    bench.put("src/a.rs", "fn a() {\n\n\tb()\n}\n");
    let outcome = bench.call("read", json!({ "path": "src/a.rs" })).await;
    insta::assert_snapshot!(outcome.text, @"
         1	fn a() {
         2	
         3		b()
         4	}
    ");
    let hash = content_hash(b"fn a() {\n\n\tb()\n}\n");
    assert_eq!(outcome.facts, [Fact::FileRead { path: "src/a.rs".into(), hash }]);
    let prepared = bench.prepare("read", json!({ "path": "src/a.rs" })).await.ok().unwrap();
    assert_eq!(prepared.recovery, Recovery::Rerun);
    assert_eq!(
        bench.assessed("read", json!({ "path": "src/a.rs" })).await,
        "read LOW: reads `src/a.rs`"
    );
}

#[tokio::test]
async fn part_of_a_file_says_which_part_it_is() {
    let mut bench = Bench::new();
    bench.put("n", (1..=9).map(|n| format!("line {n}\n")).collect::<String>());
    insta::assert_snapshot!(bench.ok("read", json!({"path": "n", "offset": 4, "limit": 2})).await, @"
         4	line 4
         5	line 5

    [lines 4 to 5 of 9; read on with offset 6]
    ");
    let text = bench.ok("read", json!({"path": "n", "offset": 9, "limit": 5})).await;
    insta::assert_snapshot!(text, @"     9	line 9");
    let text = bench.error("read", json!({"path": "n", "offset": 10})).await;
    insta::assert_snapshot!(text, @"Error: `n` has only 9 lines; line 10 is past its end.");
}

#[tokio::test]
async fn what_is_not_plain_text_is_named() {
    let mut bench = Bench::new();
    bench.put("empty", "");
    bench.put("doc.pdf", b"%PDF-1.7 ...");
    bench.put("blob", b"abc\0def");
    bench.put("latin", b"caf\xe9 \x1b[31mred\x1b[0m\r\nsecond\r\n");
    bench.put("long", format!("{}\nshort", "x".repeat(5000)));
    std::fs::create_dir(bench.path("dir")).unwrap();
    let mut shown = String::new();
    for path in ["empty", "doc.pdf", "blob", "latin", "dir", "nope", "nope/x", "blob/x"] {
        shown +=
            &format!("{}\n", bench.call("read", json!({ "path": path })).await.text.trim_end());
    }
    insta::assert_snapshot!(shown);
    let seen: Vec<_> = bench.facts.known_files.keys().collect();
    assert_eq!(seen, ["empty", "latin"], "what was only named has not been seen");
    let long = bench.ok("read", json!({ "path": "long" })).await;
    assert!(long.len() < 2200 && long.contains("… [line cut]"), "{long}");
    assert!(long.contains("[lines longer than 2000 bytes were cut: 1]"), "{long}");
}

/// A picture of stripes in one of the formats that are shown.
fn picture(width: u32, height: u32, format: image::ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let stripes = image::RgbImage::from_fn(width, height, |x, _| image::Rgb([x as u8, 0, 0]));
    stripes.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

#[tokio::test]
async fn a_picture_is_scaled_down_kept_and_handed_over() {
    let mut bench = Bench::new();
    for (name, format) in [
        ("a.png", image::ImageFormat::Png),
        ("a.jpg", image::ImageFormat::Jpeg),
        ("a.gif", image::ImageFormat::Gif),
        ("a.webp", image::ImageFormat::WebP),
    ] {
        bench.put(name, picture(3_136, 784, format));
        let outcome = bench.call("read", json!({ "path": name })).await;
        let [picture] = outcome.pictures.as_slice() else { panic!("{outcome:?}") };
        assert_eq!((picture.name.as_str(), picture.width, picture.height), (name, 1_568, 392));
        let kept = bench.store.pictures().read(picture).unwrap();
        assert_eq!(kept.len() as u64, picture.bytes);
        assert!(outcome.text.starts_with(&format!("picture `{name}`, ")), "{}", outcome.text);
    }
    assert!(bench.facts.known_files.is_empty(), "a picture is not a text that can be edited");
}

#[tokio::test]
async fn what_only_begins_like_a_picture_is_refused_in_words() {
    let mut bench = Bench::new();
    bench.put("pic.png", b"\x89PNG\r\n\x1a\n0000");
    bench.put("pic.webp", b"RIFF\0\0\0\0WEBPVP8 ");
    for path in ["pic.png", "pic.webp"] {
        let text = bench.error("read", json!({ "path": path })).await;
        let said = format!("Error: `{path}` is a picture that is damaged: ");
        assert!(text.starts_with(&said), "{text}");
    }
}

/// However many lines are asked for, a result stays small enough to hand on, and says how to read on.
#[tokio::test]
async fn a_result_is_bounded_whatever_limit_is_asked_for() {
    let mut bench = Bench::new();
    bench.put("many", "0123456789\n".repeat(200_000));
    let outcome = bench.call("read", json!({ "path": "many", "limit": 4_000_000_000_u64 })).await;
    assert!(outcome.text.len() < (1 << 20) + 200, "{} bytes", outcome.text.len());
    let last = outcome.text.trim_end().lines().last().unwrap();
    let (shown, next) = last.split_once("; read on with offset ").unwrap();
    assert!(shown.starts_with("[lines 1 to ") && shown.ends_with(" of 200000"), "{last}");
    let next: u64 = next.trim_end_matches(']').parse().unwrap();
    let on = bench.ok("read", json!({ "path": "many", "offset": next, "limit": 1 })).await;
    assert!(on.starts_with(&format!("{next:>6}\t0123456789\n")), "{on}");
}

#[tokio::test]
async fn a_file_over_the_limit_is_refused_with_another_way() {
    let mut bench = Bench::new();
    bench.put("huge", "");
    std::fs::File::options()
        .write(true)
        .open(bench.path("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let text = bench.error("read", json!({ "path": "huge" })).await;
    assert!(text.contains("too large") && text.contains("grep"), "{text}");
}

/// ES-040, ES-181
#[tokio::test]
async fn skills_and_traces_are_read_where_the_agent_sees_them() {
    let mut bench = Bench::with(|beside| {
        let (skills, trace) = (beside.join("skills"), beside.join("traces"));
        std::fs::create_dir_all(skills.join("pdf")).unwrap();
        std::fs::write(skills.join("pdf/SKILL.md"), "how to\n").unwrap();
        std::fs::create_dir(&trace).unwrap();
        std::fs::write(trace.join("task.jsonl"), "{}\n").unwrap();
        Places { skills: Some(skills), trace: Some(trace), ..Places::default() }
    });
    for (path, shown) in [
        ("/skills/pdf/SKILL.md", "     1\thow to\n"),
        (".trace/task.jsonl", "     1\t{}\n"),
        ("/workspace/.trace/task.jsonl", "     1\t{}\n"),
        ("output/../.trace/task.jsonl", "     1\t{}\n"),
    ] {
        assert_eq!(bench.ok("read", json!({ "path": path })).await, shown, "{path}");
    }
    for path in ["/skills/../traces/task.jsonl", ".trace/../../skills/pdf/SKILL.md"] {
        let text = bench.error("read", json!({ "path": path })).await;
        assert!(text.contains("outside the workspace"), "{path}: {text}");
    }
    for path in
        ["/skills/pdf/SKILL.md", "/skills/new/x.md", ".trace/task.jsonl", ".TRACE/new.jsonl"]
    {
        let text = bench.error("write", json!({ "path": path, "content": "x" })).await;
        assert!(text.contains("read-only"), "{path}: {text}");
    }
}

/// A writer that never stops must not keep a reader for ever.
#[tokio::test]
async fn a_file_that_grows_is_read_to_the_size_it_had() {
    use std::io::Write as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let mut bench = Bench::new();
    let path = bench.outside.path().join("ws/grow");
    std::fs::write(&path, "start\n".repeat(1000)).unwrap();
    let running = Arc::new(AtomicBool::new(true));
    let writer = std::thread::spawn({
        let running = running.clone();
        move || {
            let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
            // Bounded, so that a failing test does not fill the disk.
            for _ in 0..400_000 {
                if !running.load(Ordering::Relaxed) {
                    return true;
                }
                file.write_all(&[b'x'; 1024]).unwrap();
            }
            false
        }
    });
    bench.ok("read", json!({ "path": "grow", "limit": 2 })).await;
    running.store(false, Ordering::Relaxed);
    assert!(writer.join().unwrap(), "the call ends before the writer does");
}
