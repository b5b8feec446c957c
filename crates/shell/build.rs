//! Joins the topics of the command table and leaves out their examples, which only tests read.

use std::path::Path;
use std::{env, fs, io};

/// In reading order.
const TOPICS: [&str; 12] = [
    "coreutils",
    "files",
    "archives",
    "git",
    "packages",
    "languages",
    "build",
    "containers",
    "network",
    "databases",
    "cloud",
    "system",
];

fn main() -> io::Result<()> {
    let mut rules = String::new();
    for topic in TOPICS {
        let path = format!("src/table/commands/{topic}.txt");
        println!("cargo::rerun-if-changed={path}");
        for line in fs::read_to_string(&path)?.lines() {
            // Examples are indented further than rows.
            if !line.is_empty() && !line.starts_with('#') && !line.starts_with("    ") {
                rules.push_str(line);
                rules.push('\n');
            }
        }
    }
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&out).join("commands.txt"), rules)
}
