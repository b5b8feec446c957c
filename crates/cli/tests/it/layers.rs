//! The shape of the workspace, read from its manifests.

use std::collections::BTreeMap;
use std::path::Path;

/// Lower crates first; crates on one line do not know each other.
const LAYERS: &[&[&str]] = &[
    &["core", "helper"],
    &["model", "sandbox", "skills", "shell", "store"],
    &["tools"],
    &["agent"],
    &["workflow", "plan"],
    &["coordinator"],
    &["term"],
    &["tui", "server"],
    &["cli"],
];

/// Surfaces that know less than their layer allows.
const ONLY: &[(&str, &[&str])] = &[
    ("term", &["core"]),
    ("tui", &["coordinator", "term", "core"]),
    ("server", &["coordinator", "term", "core"]),
];

/// AX-009: the parts that were promised are there, each in the crate whose matter it is.
#[test]
fn output_limits_skills_roles_and_denials_have_their_modules() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (part, path, holds) in [
        ("output truncation", "tools/src/output.rs", "pub fn"),
        ("skills", "skills/src/registry.rs", "pub struct SkillRegistry"),
        ("the mode switcher", "server/src/page/mode.rs", "role"),
        ("mode configurations", "core/src/role.rs", "system_prompt_addition"),
        ("resilience to denials", "agent/src/prompts/denials.md", "denied"),
    ] {
        let text = std::fs::read_to_string(crates.join(path)).unwrap_or_default();
        assert!(text.contains(holds), "{part}: {path}");
    }
}

#[test]
fn crates_depend_downwards_only() {
    let layer = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    for (name, dependencies) in manifests() {
        // Nothing depends on these two: one is for tests, the other for measurements.
        if ["testkit", "bench"].contains(&name.as_str()) {
            continue;
        }
        let own = layer(&name).unwrap_or_else(|| panic!("`{name}` has no layer; give it one"));
        for dependency in dependencies {
            let below = layer(&dependency).unwrap_or_else(|| {
                panic!("`{name}` depends on `{dependency}`, which has no layer")
            });
            assert!(below < own, "`{name}` must not depend on `{dependency}`: arrows point down");
            let only = ONLY.iter().find(|(surface, _)| *surface == name);
            let allowed = only.is_none_or(|(_, allowed)| allowed.contains(&dependency.as_str()));
            assert!(allowed, "`{name}` must not depend on `{dependency}`; see `ONLY`");
        }
    }
}

/// A surface draws what the coordinator computes. Only the wiring, which opens the store and makes agents,
/// and the errors, which word their failures, may know them.
#[test]
fn commands_and_pages_know_neither_store_nor_agent() {
    for (path, text) in sources() {
        let draws = [
            "/cli/src/commands/",
            "/cli/src/show/",
            "/cli/src/args/",
            "/term/src/",
            "/server/src/",
        ];
        if draws.iter().any(|place| path.contains(place)) {
            assert!(!text.contains("windlass_store"), "{path} names the store");
            assert!(!text.contains("windlass_agent"), "{path} names the agent");
        }
    }
}

/// docs/surfaces.md names a test for each rule; each of them exists.
#[test]
fn the_rules_of_surfaces_name_tests_that_exist() {
    let page = std::fs::read_to_string(crates().join("../docs/surfaces.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once(" | "));
    let names: Vec<&str> =
        rows.flat_map(|(_, tests)| tests.split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 50, "{names:?}");
    let parts = ["tui", "server", "cli", "agent"].map(|part| crates().join(part).join("tests"));
    let tests: String =
        parts.iter().flat_map(|part| rust_files(part)).map(|(_, text)| text).collect();
    for name in names {
        assert!(tests.contains(&format!("fn {name}(")), "there is no test `{name}`");
    }
}

#[test]
fn core_has_no_async_and_no_io() {
    let manifest = std::fs::read_to_string(crates().join("core/Cargo.toml")).unwrap();
    for banned in ["tokio", "reqwest", "rusqlite", "futures"] {
        let normal = manifest.split("[dev-dependencies]").next().unwrap();
        assert!(!normal.contains(banned), "core must not depend on `{banned}`");
    }
}

/// ES-021…023, ES-027…029, ES-393…396: parts that the design removed do not come back.
#[test]
fn planners_evaluators_and_gateways_of_old_are_not_back() {
    let gone = [
        "SubtaskPlan",
        "SubtaskState",
        "SubtaskContract",
        "SubtaskDAG",
        "SubtaskFSM",
        "PostExecution",
        "StateResolvingTask",
        "TaskLevelVerifying",
        "RepairStrategy",
        "DependencyExpression",
        "DecisionPoint",
        "TaskPlanBundle",
        "TaskLifecycleState",
        "MonitoringSubtask",
        "ExternalEventGateway",
        "ConditionEvaluating",
    ];
    for (path, text) in sources() {
        for name in gone {
            assert!(!text.contains(name), "`{name}` is back, in {path}");
        }
    }
}

/// ES-050, ES-398…401, ES-404, ES-416: one program; each part has a place of its own.
#[test]
fn every_part_has_its_place() {
    for place in [
        "agent/src/compaction/mod.rs",
        "core/src/compaction.rs",
        "core/src/guard.rs",
        "core/src/injection.rs",
        "core/src/plan.rs",
        "core/src/policy/decide.rs",
        "agent/src/run.rs",
        "agent/src/trace.rs",
        "coordinator/src/bus/redis.rs",
        "coordinator/src/messages.rs",
        "sandbox/src/docker/lifecycle.rs",
        "skills/src/lib.rs",
        "tools/src/builtin/update_plan.rs",
        "tools/src/builtin/save_memo.rs",
        "tools/src/builtin/search_memo.rs",
        "tools/src/builtin/publish_deliverable.rs",
        "tools/src/builtin/spawn_agent.rs",
    ] {
        assert!(crates().join(place).exists(), "{place}");
    }
}

/// ES-418: what the rows before it say of planning, state, decisions and repair needs no more than a small
/// loop. Lines of code, without comments and tests.
#[test]
fn the_loop_stays_small() {
    const LIMIT: usize = 7_200;
    let of_the_loop = |path: &str| path.contains("/agent/src/");
    let code = |text: &str| {
        let lines = text.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]");
        lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
    };
    let all = sources();
    let lines: usize =
        all.iter().filter(|(path, _)| of_the_loop(path)).map(|(_, text)| code(text)).sum();
    assert!((1_000..LIMIT).contains(&lines), "{lines} lines");
}

/// MS-180: the compiler is pinned, and the manifest says the same.
#[test]
fn the_toolchain_is_pinned() {
    let read = |path: &str| std::fs::read_to_string(crates().join("..").join(path)).unwrap();
    let value = |text: &str, key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key} = "))).unwrap();
        line.trim_matches('"').to_owned()
    };
    let pinned = value(&read("rust-toolchain.toml"), "channel");
    let floor = value(&read("Cargo.toml"), "rust-version");
    assert!(pinned.starts_with(&floor), "{pinned} {floor}");
    assert!(pinned.split('.').all(|part| part.parse::<u32>().is_ok()), "a version: {pinned}");
}

/// MS-189: a change has to pass format, lints, the build and every test.
#[test]
fn the_gate_of_a_change_runs_every_check() {
    let gate = std::fs::read_to_string(crates().join("..").join(".ci/run")).unwrap();
    assert!(gate.contains("set -euo pipefail"), "the first that fails ends it");
    for step in
        ["cargo fmt --all --check", "cargo clippy --workspace --all-targets", "scripts/test"]
    {
        assert!(gate.contains(step), "{step}");
    }
    let tests = std::fs::read_to_string(crates().join("..").join("scripts/test")).unwrap();
    assert!(tests.contains("cargo test"), "{tests}");
}

/// MS-197, MS-203: documents and pages know no command that begins with the product's name.
#[test]
fn no_document_names_a_command_with_a_product_prefix() {
    let mut open =
        vec![crates().join("..").join("docs"), crates().join("..").join("crates/server/src")];
    let mut read = 0;
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            // The requirements say that there is none.
            if path.ends_with("requirements.md") {
                continue;
            }
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            read += 1;
            for prefix in ["`/windlass", "\"/windlass ", ">/windlass "] {
                assert!(!text.contains(prefix), "{} names {prefix}", path.display());
            }
        }
    }
    assert!(read > 20, "{read} files");
}

/// Every source file of ours with its path.
fn sources() -> Vec<(String, String)> {
    let found = rust_files(crates());
    assert!(found.len() > 50, "the sources were found");
    found
}

/// The files of Rust below a directory with their paths; tests in directories below it are left out.
fn rust_files(top: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut directories = vec![top.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

fn crates() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Each crate's normal dependencies on ours.
fn manifests() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(crates()).unwrap() {
        let entry = entry.unwrap();
        let Ok(manifest) = std::fs::read_to_string(entry.path().join("Cargo.toml")) else {
            continue;
        };
        let normal = manifest.split("[dev-dependencies]").next().unwrap();
        let ours = normal
            .lines()
            .filter_map(|line| line.strip_prefix("windlass-"))
            .filter_map(|line| line.split(['.', ' ', '=']).next().map(str::to_owned))
            .collect();
        found.insert(entry.file_name().into_string().unwrap(), ours);
    }
    assert!(found.len() >= 10, "the manifests were found: {found:?}");
    found
}
