//! A cargo workspace, worked on from one of its members.

use std::path::PathBuf;

use crate::machine::{by_hand, commit_all, machine, results_of, status, write};
use crate::program::{Program, Ran};

const SCRIPT: &str = "
replies:
  - {turn: 0, bash: 'cargo test --offline -q 2>&1 | grep -c FAILED; git status --short'}
  - {turn: 1, read: ../core/src/lib.rs}
  - {turn: 2, edit: {path: ../core/src/lib.rs, old_string: 'a - b', new_string: 'a + b'}}
  - {turn: 3, bash: 'cargo test --offline 2>&1 | grep \"test result\" | head -1'}
  - {turn: 4, bash: 'git add -A && git commit -qm \"Add, as it says\" && git status --short'}
  - {turn: 5, say: The sum is right.}
  - {turn: 6, edit: {path: ../core/src/lib.rs, old_string: 'pub fn', new_string: \"/// The sum.\\npub fn\"}}
  - {turn: 7, bash: 'cargo test --offline 2>&1 | grep \"test result\" | head -1'}
  - {turn: 8, say: It is documented.}
";

/// The program in a directory, with the toolchain of whoever runs the tests.
fn run_in(program: &Program, directory: &str, args: &[&str]) -> Ran {
    let home = PathBuf::from(std::env::var("HOME").unwrap());
    let at = |name: &str, below: &str| {
        std::env::var(name).map_or_else(|_| home.join(below), PathBuf::from)
    };
    let (cargo, rustup) = (at("CARGO_HOME", ".cargo"), at("RUSTUP_HOME", ".rustup"));
    let shown = format!("[sandbox]\nread_only = [{cargo:?}, {rustup:?}]\n");
    write(program.data.path(), ".config/windlass/config.toml", &shown);
    let mut command = program.command(args);
    command.current_dir(program.workspace().join(directory));
    command.env("CARGO_HOME", cargo).env("RUSTUP_HOME", rustup).output().unwrap().into()
}

#[test]
fn a_day_in_a_member_of_a_cargo_workspace() {
    let program = machine(SCRIPT);
    let place = program.workspace();
    write(place, "Cargo.toml", "[workspace]\nmembers = [\"core\", \"app\"]\nresolver = \"2\"\n");
    write(place, ".gitignore", "/target\n");
    let manifest = |name: &str, more: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{more}")
    };
    write(place, "core/Cargo.toml", &manifest("sums", ""));
    write(place, "core/src/lib.rs", "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n");
    let needs = "[dependencies]\nsums = { path = \"../core\" }\n";
    write(place, "app/Cargo.toml", &manifest("app", needs));
    let test = "#[test]\nfn two_and_two() {\n    assert_eq!(sums::add(2, 2), 4);\n}\n";
    write(place, "app/src/lib.rs", test);
    commit_all(&program, place);

    let ran = run_in(&program, "app", &["run", "fix the sum", "--json"]).expect(0);
    let results = results_of(&ran);
    assert!(results[0].starts_with("2\n?? ../Cargo.lock"), "{}", results[0]);
    assert!(results[3].starts_with("test result: ok. 1 passed"), "{}", results[3]);
    let log = by_hand(&program, place, "git log -1 --format='%an %s' --name-only");
    assert_eq!(log, "Ada L Add, as it says\n\nCargo.lock\ncore/src/lib.rs\n");
    assert_eq!(status(&program, place), "");

    let goal = ["run", "--continue", "document it", "--json"];
    let followed = results_of(&run_in(&program, "app", &goal).expect(0));
    assert!(followed[1].starts_with("test result: ok. 1 passed"), "{followed:?}");
    assert_eq!(status(&program, place), " M core/src/lib.rs\n");
}
