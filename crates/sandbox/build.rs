//! Builds the helper as a static program, so that it runs in any image of its architecture, and embeds it.
//!
//! The helper is an ordinary crate of the workspace, but a dependency on a program is not something cargo
//! offers. So this calls cargo again, with a target directory of its own: the outer cargo holds the lock on
//! the usual one.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the outer cargo sets for its own build and would change the inner one: another target directory, and
/// flags or wrappers for other targets (clippy is such a wrapper).
const NOT_INHERITED: [&str; 7] = [
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "CLIPPY_ARGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTFLAGS",
];

/// What the helper is built from, relative to this crate.
const INPUTS: [&str; 5] =
    ["build.rs", "../helper/src", "../helper/Cargo.toml", "../../Cargo.toml", "../../Cargo.lock"];

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    let built = build_helper(&out.join("helper-target"));
    let program = std::fs::read(&built)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", built.display()));
    std::fs::write(out.join("helper"), &program)
        .unwrap_or_else(|error| panic!("cannot write the helper: {error}"));
    // Part of the installed file's name. Computed here, because hashing takes longer than starting the helper.
    let mut hash = DefaultHasher::new();
    program.hash(&mut hash);
    println!("cargo::rustc-env=WINDLASS_HELPER_HASH={:016x}", hash.finish());
    for input in INPUTS {
        println!("cargo::rerun-if-changed={input}");
    }
}

fn build_helper(target_directory: &Path) -> PathBuf {
    let target = variable("TARGET");
    let mut cargo = Command::new(variable("CARGO"));
    for name in NOT_INHERITED {
        cargo.env_remove(name);
    }
    let status = cargo
        .args(["build", "--locked", "--quiet", "--package", "windlass-helper"])
        .args(["--bin", "windlass-helper", "--profile", "helper"])
        .args(["--manifest-path", "../helper/Cargo.toml", "--target-dir"])
        .arg(target_directory)
        // Named even where it is the host's: only then do the flags below spare macros and build scripts.
        .arg("--target")
        .arg(&target)
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .status()
        .unwrap_or_else(|error| panic!("cannot run cargo: {error}"));
    assert!(status.success(), "the helper does not compile");
    target_directory.join(target).join("helper/windlass-helper")
}

fn variable(name: &str) -> OsString {
    std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set"))
}
