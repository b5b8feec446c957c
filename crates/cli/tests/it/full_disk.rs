//! A disk that fills while a task works.

use std::process::Command;

use crate::program::{Program, Ran};

const SCRIPT: &str = "
replies:
  - {bash: 'touch ready; until [ -e go ]; do sleep 0.02; done; echo filled'}
  - {say: It went on.}
";

/// The day of a person whose disk fills up: `$1` is the program.
const DAY: &str = r#"
set -u
mkdir -p "$WINDLASS_DATA" && mount -t tmpfs -o size=24m,mode=700 none "$WINDLASS_DATA"
"$1" run "work on" -q & run=$!
until [ -e ready ]; do sleep 0.02; done
dd if=/dev/zero of="$WINDLASS_DATA/filler" bs=4k 2>/dev/null
touch go
wait $run; echo "run ended with $?"
task=$("$1" tasks --all --json | sed 's/.*"task_id":"\([^"]*\)".*/\1/')
"$1" tasks --all --json | grep -o '"status[^,]*'
"$1" show "$task"
"$1" inbox; echo "inbox ended with $?"
rm "$WINDLASS_DATA/filler"
"$1" resume "$task" -q; echo "resume ended with $?"
"#;

#[test]
fn a_task_on_a_full_disk_is_parked_and_says_why() {
    let program = Program::playing(SCRIPT);
    let prepared = program.command(&[]);
    let mut alone = Command::new("unshare");
    // Root needs no namespace of users to mount.
    if !rustix::process::geteuid().is_root() {
        alone.arg("--map-root-user");
    }
    alone.args(["--mount", "sh", "-c", DAY, "sh"]).arg(prepared.get_program());
    alone.env_clear().current_dir(program.workspace());
    alone.envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran: Ran = alone.output().unwrap().into();
    let said = &ran.stdout;
    assert!(ran.stderr.contains("no space"), "{ran:?}");
    assert!(said.contains(r#""status":"paused""#), "{ran:?}");
    assert!(said.contains("no space is left on the disk"), "{ran:?}");
    assert!(said.contains("inbox ended with 0"), "{ran:?}");
    assert!(said.ends_with("It went on.\nresume ended with 0\n"), "{ran:?}");
}
