//! The shape of the workspace, read from its manifests.

use std::collections::BTreeMap;
use std::path::Path;

/// Lower crates first; crates on one line do not know each other.
const LAYERS: &[&[&str]] = &[
    &["core"],
    &["model", "sandbox", "skills", "store"],
    &["tools"],
    &["agent"],
    &["workflow", "plan"],
    &["coordinator"],
    &["tui", "server", "acp"],
    &["cli"],
];

#[test]
fn crates_depend_downwards_only() {
    let layer = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    for (name, dependencies) in manifests() {
        // Nothing depends on these two: the one is for tests, the other measures.
        if ["testkit", "bench"].contains(&name.as_str()) {
            continue;
        }
        let own = layer(&name).unwrap_or_else(|| panic!("`{name}` has no layer; give it one"));
        for dependency in dependencies {
            let below = layer(&dependency).unwrap_or_else(|| {
                panic!("`{name}` depends on `{dependency}`, which has no layer")
            });
            assert!(below < own, "`{name}` must not depend on `{dependency}`: arrows point down");
        }
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
