//! Keys of ours that come in by way of files, commands and replies stay out of everything that is kept, shown
//! or sent.

use crate::program::Program;

const KEY: &str = "sk-test-0123456789abcdef";

fn run(script: &str, args: &[&str]) -> (Program, String) {
    let program = Program::playing(script);
    std::fs::write(program.workspace().join(".env"), format!("LITELLM_API_KEY={KEY}\n")).unwrap();
    let mut command = program.command(args);
    let output = command.env("LITELLM_API_KEY", KEY).output().unwrap();
    let mut shown = String::from_utf8_lossy(&output.stdout).into_owned();
    shown.push_str(&String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}");
    (program, shown)
}

/// Every file below a directory that holds the key.
fn holding_the_key(directory: &std::path::Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding_the_key(&path, found);
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn a_key_that_is_read_printed_or_said_is_kept_nowhere() {
    let script = format!(
        "replies:
  - {{read: .env}}
  - {{bash: 'cat .env; for i in $(seq 3000); do cat .env; done'}}
  - {{say: 'the key is {KEY}'}}
"
    );
    let goal = format!("look at {KEY}");
    let (program, shown) = run(&script, &["run", &goal, "--json", "--sandbox", "host"]);
    assert!(!shown.contains(KEY), "{shown}");
    assert!(shown.contains("the key is [redacted: LITELLM_API_KEY]"), "{shown}");
    let mut found = Vec::new();
    holding_the_key(&program.data_directory(), &mut found);
    assert_eq!(found, Vec::<String>::new());
    for request in program.server.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains(KEY));
    }
}

#[test]
fn a_mark_is_never_written_in_place_of_a_key() {
    let script = "
replies:
  - {read: .env}
  - write: {path: .env, content: 'LITELLM_API_KEY=[redacted: LITELLM_API_KEY]'}
  - edit: {path: .env, old_string: 'LITELLM', new_string: '[redacted: LITELLM_API_KEY] LITELLM'}
  - {say: done}
";
    let (program, shown) = run(script, &["run", "tidy", "--json", "--sandbox", "host"]);
    assert_eq!(program.file(".env"), format!("LITELLM_API_KEY={KEY}\n"));
    let results = shown.lines().filter(|line| line.contains("\"event_type\":\"tool_result\""));
    let refused = results.filter(|line| line.contains("nothing was written")).count();
    assert_eq!(refused, 2, "{shown}");
}
