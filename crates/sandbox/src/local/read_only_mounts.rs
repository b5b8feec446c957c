//! What of the home directory is shown read-only, and which files in it stay hidden.

use std::fs;
use std::path::{Path, PathBuf};

/// Shown by default, relative to home: toolchains, and who a person is to git.
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
    ".gitconfig",
    ".config/git",
];

/// Caches that tools must write to, relative to home. Below a shown directory each gets a layer of its own:
/// what is there is used, what is added is gone with the sandbox, and the host's stays as it is.
const CACHES: &[&str] = &[".cargo/registry", ".cargo/git", "go/pkg/mod"];

/// Names that hold credentials wherever they stand, as far as they are known.
const CREDENTIALS: &[&str] = &[
    "credentials",
    "credentials.toml",
    "credentials.json",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".netrc",
    "_netrc",
    ".git-credentials",
    "auth.json",
    "hosts.yml",
    "token",
    ".env",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
];

/// The largest file that is searched for tokens. A megabyte of configuration does not hold one.
const MAX_LOOKED_INTO: u64 = 256 * 1024;

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
        if self.hidden.is_empty() {
            return vec![self.source.clone()];
        }
        let Ok(entries) = fs::read_dir(&self.source) else { return Vec::new() };
        let hidden = |name: &std::ffi::OsStr| self.hidden.contains(&self.target.join(name));
        entries
            .flatten()
            .filter(|entry| !hidden(&entry.file_name()))
            .map(|entry| entry.path())
            .collect()
    }
}

/// Everything of the list that exists and is no secret itself.
pub(super) fn find(home: &Path, list: &[PathBuf]) -> Vec<ReadOnlyMount> {
    list.iter()
        .filter_map(|path| {
            let target = home.join(path);
            let source = fs::canonicalize(&target).ok()?;
            let found = fs::metadata(&source).ok()?;
            if found.is_file() && is_secret(&source) {
                return None;
            }
            let hidden = if found.is_dir() { secrets_below(&source, &target) } else { Vec::new() };
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

/// Credential files directly in a shown directory. Deeper ones belong to packages, which are public.
fn secrets_below(source: &Path, target: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(source) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| is_secret(&entry.path()))
        .map(|entry| target.join(entry.file_name()))
        .collect()
}

fn is_secret(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if CREDENTIALS.contains(&name) || name.starts_with("credentials") {
        return true;
    }
    // Configuration of git and cargo may hold tokens, and mostly does not.
    let configuration = [".gitconfig", "config", "config.toml"].contains(&name);
    let small =
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_LOOKED_INTO);
    configuration && small && fs::read_to_string(path).is_ok_and(|text| holds_secret(&text))
}

/// Whether a configuration text seems to hold a secret: a word for one before `=`, or a URL with a password.
fn holds_secret(text: &str) -> bool {
    const WORDS: [&str; 5] = ["token", "password", "secret", "extraheader", "_auth"];
    text.lines().any(|line| {
        let line = line.trim().to_ascii_lowercase();
        let key = line.split('=').next().unwrap_or_default();
        let password = line.split("://").nth(1).is_some_and(|rest| {
            rest.split('/').next().is_some_and(|authority| authority.contains('@'))
        });
        line.contains('=') && WORDS.iter().any(|word| key.contains(word)) || password
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_with_a_token_is_a_secret_and_without_is_not() {
        for (text, secret) in [
            ("[user]\n  name = A\n  email = a@b.c\n", false),
            ("[registry]\ntoken = \"x\"", true),
            ("[url \"https://x:y@host/\"]\n insteadOf = https://host/", true),
            ("[http]\n extraheader = AUTHORIZATION: basic x", true),
            ("[url \"ssh://git@host/\"]\n", true),
            ("[credential]\n helper = store", false),
            ("[source.crates-io]\nreplace-with = \"mirror\"", false),
        ] {
            assert_eq!(holds_secret(text), secret, "{text}");
        }
    }

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
        let shown = find(home.path(), &list);
        assert_eq!(shown.len(), 1);
        let mut hidden = shown[0].hidden.clone();
        hidden.sort();
        assert_eq!(hidden, [cargo.join("credentials"), cargo.join("credentials.toml")]);
    }
}
