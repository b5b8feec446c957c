//! Compiles the helper with the same compiler: static, std-only, embedded by `src/helper.rs`.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::process::Command;

fn main() {
    let variable =
        |name: &str| std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set"));
    let out = PathBuf::from(variable("OUT_DIR")).join("helper");
    let target = variable("TARGET");
    let mut rustc = Command::new(variable("RUSTC"));
    rustc
        .args(["helper/main.rs", "--crate-name", "windlass_helper", "--edition", "2024"])
        .args(["-C", "opt-level=2", "-C", "panic=abort", "-C", "strip=symbols"])
        .args(["-C", "target-feature=+crt-static", "-D", "warnings", "--target"])
        .arg(&target)
        .arg("-o")
        .arg(&out);
    let linker = std::env::var_os("RUSTC_LINKER");
    if let Some(linker) = linker {
        let mut option = std::ffi::OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    let status = rustc.status().unwrap_or_else(|error| panic!("cannot run the compiler: {error}"));
    assert!(status.success(), "the helper does not compile");
    // Part of the installed file's name. Told here, because hashing it takes longer than starting it.
    let program = std::fs::read(&out).unwrap_or_else(|error| panic!("no helper: {error}"));
    let mut hash = DefaultHasher::new();
    program.hash(&mut hash);
    println!("cargo::rustc-env=WINDLASS_HELPER_HASH={:016x}", hash.finish());
    for input in ["build.rs", "helper", "src/protocol.rs", "src/wire.rs"] {
        println!("cargo::rerun-if-changed={input}");
    }
}
