//! A kernel that says no, made by a system-call filter around the test's own process.

use windlass_sandbox::{Error, Local, Sandbox};

use crate::everyone;
use crate::support::{Place, Who, block_on, run};

const REFUSED: &str = "WINDLASS_TEST_REFUSED";

/// Refuses new namespaces, and gives Landlock's first call the answer `LANDLOCK`, then becomes the program.
/// One instruction a line: code, jumps if true and false, value.
const FILTER: &str = r#"
    my ($prctl, $seccomp, $clone, $landlock) = splice @ARGV, 0, 4;
    my @program = map { pack "SCCL", @$_ } (
        [0x20, 0, 0, 0],
        [0x15, 0, 3, $clone],
        [0x20, 0, 0, 16],
        [0x45, 0, 4, 0x7e020000],
        [0x06, 0, 0, 0x00050001],
        [0x20, 0, 0, 0],
        [0x15, 0, 1, 444],
        [0x06, 0, 0, $landlock],
        [0x06, 0, 0, 0x7fff0000],
    );
    my $bytes = join "", @program;
    syscall($prctl + 0, 38, 1, 0, 0, 0) == 0 or die "no new privileges: $!";
    my $filter = pack "S x6 P", scalar @program, $bytes;
    syscall($seccomp + 0, 1, 0, $filter) == 0 or die "seccomp: $!";
    exec @ARGV or die "exec: $!";
"#;

fn under_the_filter(test: &str, landlock: u32) {
    let (prctl, seccomp, clone) =
        if cfg!(target_arch = "x86_64") { (157, 317, 56) } else { (167, 277, 220) };
    let output = std::process::Command::new("perl")
        .args(["-e", FILTER])
        .args([prctl, seccomp, clone, landlock].map(|number: u32| number.to_string()))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(REFUSED, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
}

#[test]
fn without_namespaces_landlock_stands_and_the_weakness_is_said() {
    everyone!(|_| async move {
        under_the_filter("refused::inside_without_namespaces", 0x7fff_0000);
    });
}

#[test]
fn inside_without_namespaces() {
    if std::env::var_os(REFUSED).is_none() {
        return;
    }
    block_on(async {
        let place = Place::new(Who::User);
        let local = place.local().await;
        let report = local.isolation();
        let expected = "weaker isolation: namespaces are not available (make namespaces: Operation not \
                        permitted";
        assert!(report.warnings.iter().any(|text| text.starts_with(expected)), "{report:?}");
        let workspace = report.workspace.display().to_string();
        assert_eq!(run(&local, "pwd").await.ok(), format!("{workspace}\n"));
        run(&local, &format!("ls {}", place.data.display())).await.fails();
    });
}

#[test]
fn without_both_the_error_says_what_to_enable() {
    everyone!(|_| async move {
        under_the_filter("refused::inside_without_both", 0x0005_0000 | 38);
    });
}

#[test]
fn inside_without_both() {
    if std::env::var_os(REFUSED).is_none() {
        return;
    }
    block_on(async {
        let place = Place::new(Who::User);
        let error = Local::open(place.config()).await.unwrap_err();
        assert!(matches!(error, Error::NoIsolation { .. }), "{error}");
        for hint in ["user.max_user_namespaces", "lsm=", "docker", "host"] {
            assert!(error.to_string().contains(hint), "{error}");
        }
        // A person may still choose to go without.
        run(&place.host(), "true").await.ok();
    });
}
