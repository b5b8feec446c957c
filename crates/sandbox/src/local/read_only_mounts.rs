//! What of the home directory is shown read-only, and which files in it stay hidden.

use std::fs;
use std::path::{Path, PathBuf};

use super::credentials;

/// Shown by default, relative to home: toolchains.
pub const TOOLCHAINS: &[&str] = &[
    ".cargo",
    ".rustup",
    ".npm",
    ".nvm",
    ".volta",
    ".pyenv",
    ".local/bin",
    ".local/lib",
    ".local/share/uv",
    ".local/share/pnpm",
    ".bun",
    ".deno",
    ".sdkman",
    ".rbenv",
    ".asdf",
    "go",
];

/// Caches that tools must write to, relative to home. Below a shown directory each gets a layer of its own:
/// what is there is used, what is added is gone with the sandbox, and the host's stays as it is.
const CACHES: &[&str] = &[".cargo/registry", ".cargo/git", "go/pkg/mod"];

/// One path to show.
pub(super) struct ReadOnlyMount {
    pub source: PathBuf,
    pub target: PathBuf,
    /// What lies below it and is covered, as it is seen.
    pub hidden: Vec<PathBuf>,
    /// What lies below it and may be written to without effect on the host: source and target.
    pub caches: Vec<(PathBuf, PathBuf)>,
}

impl ReadOnlyMount {
    /// The same without what is hidden: the path itself, or all in it but that.
    pub fn without_hidden(&self) -> Vec<PathBuf> {
        let below =
            |hidden: &PathBuf| hidden.strip_prefix(&self.target).map(|path| self.source.join(path));
        let hidden: Vec<PathBuf> = self.hidden.iter().flat_map(below).collect();
        let mut parts = Vec::new();
        let mut waiting = vec![self.source.clone()];
        while let Some(path) = waiting.pop() {
            if hidden.contains(&path) {
                continue;
            }
            match hidden.iter().any(|hidden| hidden.starts_with(&path)) {
                true => waiting.extend(
                    fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()),
                ),
                false => parts.push(path),
            }
        }
        parts
    }
}

/// Everything of the list that exists and is not a secret itself. What is known of them is kept in `data`.
pub(super) fn find(home: &Path, list: &[PathBuf], data: &Path) -> Vec<ReadOnlyMount> {
    list.iter()
        .filter_map(|path| {
            let target = home.join(path);
            let source = fs::canonicalize(&target).ok()?;
            let found = fs::metadata(&source).ok()?;
            if found.is_file() && credentials::is_credential(&source) {
                return None;
            }
            let mut hidden = Vec::new();
            if found.is_dir() {
                let credentials = credentials::find(&source, data);
                hidden.extend(credentials.iter().map(|path| target.join(path)));
            }
            let caches = caches_below(home, &target);
            Some(ReadOnlyMount { source, target, hidden, caches })
        })
        .collect()
}

fn caches_below(home: &Path, target: &Path) -> Vec<(PathBuf, PathBuf)> {
    let caches = CACHES.iter().map(|cache| home.join(cache));
    caches
        .filter(|cache| cache.starts_with(target) && cache != target)
        .filter_map(|cache| Some((fs::canonicalize(&cache).ok()?, cache)))
        .filter(|(source, _)| source.is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_directory_hides_its_credential_files() {
        let home = tempfile::tempdir().unwrap();
        let cargo = home.path().join(".cargo");
        fs::create_dir_all(cargo.join("bin")).unwrap();
        for file in ["credentials.toml", "credentials", "env", "config.toml"] {
            fs::write(cargo.join(file), "x = 1").unwrap();
        }
        fs::write(home.path().join(".npmrc"), "x").unwrap();
        let list = [".cargo", ".npmrc", ".missing"].map(PathBuf::from);
        let shown = find(home.path(), &list, home.path());
        assert_eq!(shown.len(), 1);
        let mut hidden = shown[0].hidden.clone();
        hidden.sort();
        assert_eq!(hidden, [cargo.join("credentials"), cargo.join("credentials.toml")]);
        let mut parts = shown[0].without_hidden();
        parts.sort();
        assert_eq!(parts, ["bin", "config.toml", "env"].map(|name| cargo.join(name)));
    }
}
