//! Pictures that people attach, as the model gets them.

use serde_json::Value;
use windlass_testkit::{bomb, png};

use crate::interactive::Screen;
use crate::program::Program;

fn put(program: &Program, name: &str, bytes: &[u8]) {
    std::fs::write(program.workspace().join(name), bytes).unwrap();
}

/// The pictures of each message of the last request.
fn shown(program: &Program) -> Vec<(usize, String)> {
    let body = program.server.requests().last().unwrap().json();
    let messages = body["messages"].as_array().unwrap().clone();
    let of = |(place, message): (usize, &Value)| {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        let urls = blocks.into_iter().filter_map(move |block| {
            block["image_url"]["url"].as_str().map(|url| (place, url.to_owned()))
        });
        urls.collect::<Vec<_>>()
    };
    messages.iter().enumerate().flat_map(of).collect()
}

#[test]
fn a_picture_named_in_a_goal_is_shown_to_the_model() {
    let program = Program::playing("replies: [{say: blue}]");
    put(&program, "shot.png", &png(40, 30, 1));
    let ran = program.windlass(&["run", "make it look like @shot.png, please"]).expect(0);
    assert!(!ran.stderr.contains("notice"), "{}", ran.stderr);
    let shown = shown(&program);
    assert_eq!(shown.len(), 1);
    assert!(shown[0].0 == 1 && shown[0].1.starts_with("data:image/png;base64,iVBORw0KGgo"));
    let body = program.server.requests()[0].json();
    let text = body["messages"][1]["content"][1]["text"].as_str().unwrap();
    assert!(text.starts_with("# Goal\n\nmake it look like @shot.png, please\n"), "{text}");
    let files = std::fs::read_dir(program.data_directory().join("pictures")).unwrap();
    assert_eq!(files.count(), 1);
}

#[test]
fn a_model_without_sight_reads_the_name_of_a_picture() {
    let program = Program::playing("replies: [{say: ok}]");
    put(&program, "shot.png", &png(40, 30, 1));
    let config = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[models.\"gpt-4o\"]\nvision = false\n").unwrap();
    let ran = program.windlass(&["run", "look at @shot.png"]).expect(0);
    assert!(ran.stderr.contains("set `vision = true` in [models.\"NAME\"]"), "{}", ran.stderr);
    assert!(shown(&program).is_empty());
    let sent = program.last_message_sent();
    let note = "[picture `shot.png`, PNG 40×30 is not shown: this model cannot see pictures]";
    assert!(sent.contains(note), "{sent}");
}

/// Nothing is started with a picture that cannot be shown.
#[test]
fn what_is_not_a_picture_is_refused_before_a_task_is_made() {
    let program = Program::playing("replies: [{say: ok}]");
    put(&program, "text.png", b"not a picture");
    put(&program, "cut.png", &png(400, 300, 1)[..60]);
    put(&program, "bomb.png", &bomb());
    put(&program, "large.jpg", b"\xff\xd8\xff");
    let large = std::fs::File::options().write(true).open(program.workspace().join("large.jpg"));
    large.unwrap().set_len(60 << 20).unwrap();
    for (name, why) in [
        ("text.png", "is not a PNG, JPEG, GIF or WebP picture"),
        ("cut.png", "is a picture that is damaged: "),
        ("bomb.png", "is a picture of 60000×60000 pixels, and at most 50 million are taken"),
        ("large.jpg", "is a picture of 60 MiB, and at most 20 MiB are taken"),
    ] {
        let ran = program.windlass(&["run", &format!("look at @{name}")]).expect(2);
        assert!(ran.stderr.contains(&format!("error: `{name}` {why}")), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
        assert!(!ran.stderr.contains("caused by"), "said once: {}", ran.stderr);
    }
    assert!(program.server.requests().is_empty());
    assert!(program.windlass(&["tasks", "--json"]).expect(0).stdout.is_empty());
}

/// The agent reads what is wrong, and the task continues.
#[test]
fn an_agent_that_reads_a_broken_picture_learns_why() {
    let program = Program::playing(
        "replies: [{read: bomb.png}, {read: cut.png}, {read: large.jpg}, {say: ok}]",
    );
    put(&program, "cut.png", &png(400, 300, 1)[..60]);
    put(&program, "bomb.png", &bomb());
    put(&program, "large.jpg", b"\xff\xd8\xff");
    let large = std::fs::File::options().write(true).open(program.workspace().join("large.jpg"));
    large.unwrap().set_len(60 << 20).unwrap();
    program.windlass(&["run", "look"]).expect(0);
    let body = String::from_utf8(program.server.requests()[3].body.to_vec()).unwrap();
    for words in [
        "Error: `bomb.png` is a picture of 60000×60000 pixels, and at most 50 million are taken.",
        "Error: `cut.png` is a picture that is damaged: ",
        "Error: `large.jpg` is a picture of 60 MiB, and at most 20 MiB are taken.",
    ] {
        assert!(body.contains(words), "{words}\n{body}");
    }
    assert!(shown(&program).is_empty());
}

#[test]
fn a_message_to_an_ended_task_carries_its_picture() {
    let program = Program::playing("replies: [{say: first}, {say: second}]");
    program.windlass(&["run", "begin"]).expect(0);
    put(&program, "shot.png", &png(40, 30, 1));
    let task = program.task();
    program.windlass(&["send", &task, "now like @shot.png"]).expect(0);
    let shown = shown(&program);
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].0, 3, "after the goal and the reply");
}

#[test]
fn pictures_go_with_the_tasks_that_were_shown_them() {
    let program = Program::playing("match: [{say: seen}]");
    put(&program, "old.png", &png(40, 30, 1));
    program.windlass(&["run", "look at @old.png"]).expect(0);
    let pictures = program.data_directory().join("pictures");
    let kept = std::fs::read_dir(&pictures).unwrap().next().unwrap().unwrap().path();
    // As old as what a prune removes.
    let days = std::time::Duration::from_secs(3 * 24 * 3600);
    let file = std::fs::File::options().write(true).open(&kept).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + days).unwrap();
    program.windlass(&["run", "something else"]).expect(0);
    program.windlass(&["prune", "--older-than", "0s"]).expect(0);
    assert!(!kept.exists(), "no task names it any more");
}

#[test]
fn a_picture_on_standard_input_is_shown_to_the_model() {
    let program = Program::playing("replies: [{say: blue}]");
    let piped = |args: &[&str], bytes: &[u8]| -> crate::program::Ran {
        let path = program.data.path().join("piped");
        std::fs::write(&path, bytes).unwrap();
        let file = std::fs::File::open(path).unwrap();
        program.command(args).stdin(file).output().unwrap().into()
    };
    let ran = piped(&["run", "what colour is it?"], &png(40, 30, 1)).expect(0);
    assert!(!ran.stderr.contains("notice"), "{}", ran.stderr);
    let shown = shown(&program);
    assert!(shown.len() == 1 && shown[0].1.starts_with("data:image/png;base64,"), "{shown:?}");
    let alone = piped(&["run", "-"], &png(40, 30, 1)).expect(2);
    assert!(
        alone.stderr.contains("standard input is a picture, and there is no goal"),
        "{alone:?}"
    );
    let broken = piped(&["run", "look"], &png(400, 300, 1)[..60]).expect(2);
    assert!(broken.stderr.contains("`standard input` is a picture that is damaged"), "{broken:?}");
    assert_eq!(program.server.requests().len(), 1);
}

/// What cannot be attached is reported, and the message is sent without it.
#[test]
fn a_picture_named_in_the_terminal_is_shown_to_the_model() {
    let program = Program::playing("replies: [{say: It is blue.}]");
    put(&program, "shot.png", &png(40, 30, 1));
    let mut screen = Screen::open(&program, &[]);
    screen.says("look at @shot.png and @nowhere.txt");
    screen.until("It is blue.");
    screen.until("`@nowhere.txt` is not attached");
    let shown = shown(&program);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(shown[0].1.starts_with("data:image/png;base64,iVBORw0KGgo"));
    screen.leave();
}
