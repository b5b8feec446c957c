//! Credential files in directories that are shown to commands, at any depth.
//!
//! Such a directory may hold hundreds of thousands of files, so the search is bounded, and what it found deep down is
//! remembered for some minutes, or until something changes near the top.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use windlass_core::policy::files;

use crate::helper;

/// The most entries that are looked at below one shown directory, those near the top first.
const MAX_ENTRIES: usize = 200_000;

/// Directories down to this depth are looked at every time, and a change in them has all the rest searched again.
const FRESH_DEPTH: usize = 2;

/// How long is remembered what was found deep down, where the change of a file shows nowhere near the top.
const REMEMBERED_SECONDS: u64 = 15 * 60;

/// The largest file that is searched for tokens. A megabyte of configuration does not hold one.
const MAX_LOOKED_INTO: u64 = 256 * 1024;

/// Names that hold credentials in any directory, as far as they are known.
const NAMES: &[&str] = &[
    ".npmrc",
    "npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".authinfo",
    ".dockercfg",
    ".vault-token",
    ".terraformrc",
    ".htpasswd",
    ".envrc",
    ".git-credentials",
    "application_default_credentials.json",
    "auth.json",
    "hosts.yml",
    "token",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    "kubeconfig",
    "rclone.conf",
    "wallet.dat",
    "secring.gpg",
    ".mylogin.cnf",
    ".databrickscfg",
    ".dockerconfigjson",
    "service-account.json",
    "terraform.tfstate.backup",
    "bunfig.toml",
    ".bunfig.toml",
    "token.json",
];

/// What programs and people put behind the name of a copy.
const COPIES: &[&str] = &["~", ".bak", ".old", ".orig", ".save"];

/// Endings of files that hold credentials in any directory: states and variables of Terraform, stores of passwords
/// and keys.
const ENDINGS: &[&str] = &["tfstate", "tfvars", "kdbx", "ppk", "p12", "pfx", "jks", "keystore"];

/// Names that only a person's own credentials have, and no downloaded file needs.
const PERSONAL: &[&str] = &[
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".vault-token",
    ".pypirc",
    "application_default_credentials.json",
];

/// Names of configuration that may hold tokens, and mostly does not.
const CONFIGURATION: &[&str] = &[
    ".gitconfig",
    "config",
    "config.toml",
    "config.json",
    "config.yaml",
    "config.yml",
    "pip.conf",
    "gradle.properties",
    "settings.xml",
    "nuget.config",
    "secrets.yaml",
    "secrets.yml",
    "secrets.json",
    "secrets.toml",
    ".condarc",
];

/// Endings of examples, which hold no value.
const EXAMPLES: &[&str] = &[".example", ".sample", ".template", ".dist", ".defaults"];

/// Endings of program text: a package about credentials has such files, and is public.
const PROGRAM_TEXT: &[&str] = &[
    "rs", "go", "py", "js", "ts", "mjs", "cjs", "h", "c", "cc", "java", "rb", "html", "md", "pyc",
    "map",
];

/// Directories that hold what was downloaded, and is public. Below them a name alone hides nothing.
const PACKAGES: &[&str] = &[
    "node_modules",
    "site-packages",
    "dist-packages",
    "registry",
    "_cacache",
    "mod",
    "gems",
    "toolchains",
];

/// Everything below a shown directory that looks like a credential, relative to it. What lies deep is kept in `data`.
pub(super) fn find(directory: &Path, data: &Path) -> Vec<PathBuf> {
    let (mut found, stamp) = search(directory, FRESH_DEPTH);
    let kept = CredentialCache { path: data.join("helper").join(file_name(directory)), stamp };
    let deep = kept.recall().unwrap_or_else(|| {
        let (deep, _) = search(directory, usize::MAX);
        kept.remember(&deep);
        deep
    });
    found.extend(deep);
    found.sort();
    found.dedup();
    found
}

/// Whether this file, by its name or content, holds a credential.
pub(super) fn is_credential(path: &Path) -> bool {
    is_secret(path, false)
}

/// Searches down to a depth; returns what it found, and a value for the directories it saw.
fn search(top: &Path, max_depth: usize) -> (Vec<PathBuf>, u64) {
    let mut hash = DefaultHasher::new();
    fs::read("/proc/sys/kernel/random/boot_id").ok().hash(&mut hash);
    seconds_since_boot().map(|seconds| seconds / REMEMBERED_SECONDS).hash(&mut hash);
    let mut found = Vec::new();
    let mut left = MAX_ENTRIES;
    let mut waiting = VecDeque::from([(top.to_owned(), 0, false)]);
    while let Some((directory, depth, of_package)) = waiting.pop_front() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        if max_depth == FRESH_DEPTH {
            let changed = fs::metadata(&directory).map(|found| (found.mtime(), found.mtime_nsec()));
            (&directory, changed.ok()).hash(&mut hash);
        }
        for entry in entries.flatten() {
            if left == 0 {
                return (found, hash.finish());
            }
            left -= 1;
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if kind.is_dir() {
                if depth < max_depth {
                    let of_package = of_package || is_one_of(&name, PACKAGES);
                    waiting.push_back((entry.path(), depth + 1, of_package));
                }
            } else if kind.is_file() && is_secret(&entry.path(), of_package) {
                found.extend(entry.path().strip_prefix(top).map(Path::to_owned));
            } else if kind.is_symlink() && is_secret(&entry.path(), of_package) {
                found.extend(target_below(top, &entry.path()));
            }
        }
    }
    (found, hash.finish())
}

fn seconds_since_boot() -> Option<u64> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    text.split('.').next()?.parse().ok()
}

/// What a link with the name of a credential leads to, where that is seen too, under whatever name.
fn target_below(top: &Path, link: &Path) -> Option<PathBuf> {
    let (top, target) = (top.canonicalize().ok()?, link.canonicalize().ok()?);
    let inner = target.strip_prefix(top).ok().map(Path::to_owned);
    inner.filter(|_| target.is_file())
}

fn is_one_of(name: &OsStr, list: &[&str]) -> bool {
    list.iter().any(|one| name.as_bytes() == one.as_bytes())
}

fn is_secret(path: &Path, of_package: bool) -> bool {
    // Case counts for less here than the file system says: programs spell such names in several ways.
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut name = &*name.to_ascii_lowercase();
    while let Some(copied) = COPIES.iter().find_map(|end| name.strip_suffix(end)) {
        name = copied;
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_example = EXAMPLES.iter().any(|end| name.ends_with(end));
    let is_key_file = ["pem", "key", "asc"].contains(&ending) || name.ends_with("_key");
    let is_named = NAMES.contains(&name)
        || ENDINGS.contains(&ending)
        || name.starts_with("credentials") && !PROGRAM_TEXT.contains(&ending)
        || (name == ".env" || name.starts_with(".env.") || ending == "env") && !is_example;
    let is_personal = PERSONAL.contains(&name) || lies_among_secrets(path);
    if is_personal || is_named && !of_package {
        return true;
    }
    let may_hold = is_named || CONFIGURATION.contains(&name) || is_key_file && !of_package;
    let small =
        || fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_LOOKED_INTO);
    may_hold && small() && fs::read_to_string(path).is_ok_and(|text| holds_secret(&text))
}

/// Whether a file lies in a directory whose files are secrets: `.ssh`, `.aws` and their like, wherever they are.
fn lies_among_secrets(path: &Path) -> bool {
    path.to_str().is_some_and(files::is_secret_by_directory)
}

/// Whether a configuration text seems to hold a secret: a word for one before `=` or `:`, a URL with a password, or
/// a private key.
fn holds_secret(text: &str) -> bool {
    const WORDS: [&str; 9] = [
        "token",
        "passw",
        "secret",
        "extraheader",
        "_auth",
        "api_key",
        "apikey",
        "access_key",
        "private_key",
    ];
    text.contains("PRIVATE KEY-----")
        || text.lines().any(|line| {
            let line = line.trim().to_ascii_lowercase();
            let key = line.split(['=', ':']).next().unwrap_or_default();
            let password = line.split("://").nth(1).is_some_and(|rest| {
                rest.split('/').next().is_some_and(|authority| authority.contains('@'))
            });
            // `key: value`, not a table that begins with its name alone.
            let is_pair = line.contains(": ") && !line.starts_with(['#', ';', '/']);
            let has_value = line.contains('=') || line.contains("\":") || is_pair;
            has_value && WORDS.iter().any(|word| key.contains(word)) || password
        })
}

/// What was found deep in a directory, for as long as the stamp is the same.
struct CredentialCache {
    path: PathBuf,
    stamp: u64,
}

impl CredentialCache {
    fn recall(&self) -> Option<Vec<PathBuf>> {
        let kept = fs::read(&self.path).ok()?;
        let (stamp, paths) = kept.split_first_chunk()?;
        let is_same = u64::from_le_bytes(*stamp) == self.stamp;
        let paths = paths.split(|&byte| byte == 0).filter(|path| !path.is_empty());
        is_same.then(|| paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
    }

    /// What cannot be written is searched for again.
    fn remember(&self, found: &[PathBuf]) {
        let mut kept = self.stamp.to_le_bytes().to_vec();
        for path in found {
            kept.extend_from_slice(path.as_os_str().as_bytes());
            kept.push(0);
        }
        let new = self.path.with_file_name(helper::unique_name("credentials"));
        let _ = fs::write(&new, kept).and_then(|()| fs::rename(&new, &self.path));
    }
}

fn file_name(directory: &Path) -> String {
    let mut hash = DefaultHasher::new();
    directory.hash(&mut hash);
    format!("credentials-{:016x}", hash.finish())
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
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nx", true),
            ("{\"auth_token\": \"x\"}", true),
            ("registry:\n  password: x\n", true),
            ("openai_api_key = \"sk\"", true),
            ("secrets:\n  - name\n# the token: see the manual\n", false),
        ] {
            assert_eq!(holds_secret(text), secret, "{text}");
        }
    }

    #[test]
    fn credentials_are_found_at_any_depth_and_public_packages_left_alone() {
        let top = tempfile::tempdir().unwrap();
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("helper")).unwrap();
        let write = |path: &str, text: &str| {
            let path = top.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for secret in [
            "credentials.toml",
            "a/.npmrc",
            "a/b/c/d/.netrc",
            "bin/.env.local",
            "x/id_rsa",
            "y/.npmrc.bak~",
        ] {
            write(secret, "sk");
        }
        write("v/node_modules/p/.npmrc", "_authToken = sk");
        write("keys/server.pem", "-----BEGIN PRIVATE KEY-----");
        for public in [
            "v/node_modules/q/.npmrc",
            "src/credentials.rs",
            "src/token/token.go",
            "a/.env.example",
            "keys/ca.pem",
            "env",
        ] {
            write(public, "x = 1");
        }
        write("work/registry", "sk");
        std::os::unix::fs::symlink("../work/registry", top.path().join("a/.pypirc")).unwrap();
        std::os::unix::fs::symlink("/nowhere", top.path().join("a/.pgpass")).unwrap();
        let expected = [
            "a/.npmrc",
            "a/b/c/d/.netrc",
            "bin/.env.local",
            "credentials.toml",
            "keys/server.pem",
            "v/node_modules/p/.npmrc",
            "work/registry",
            "x/id_rsa",
            "y/.npmrc.bak~",
        ]
        .map(PathBuf::from);
        for _ in 0..2 {
            assert_eq!(find(top.path(), data.path()), expected);
        }
        for hidden in ["r/registry/p/.netrc", "r/node_modules/p/.ssh/deploy", "t/State.TFSTATE"] {
            write(hidden, "machine host password sk");
            assert!(find(top.path(), data.path()).contains(&PathBuf::from(hidden)), "{hidden}");
        }
        for named in [
            ".aws/config",
            ".kube/config",
            ".docker/config.json",
            "kubeconfig",
            "prod.env",
            "id_rsa.old",
            ".netrc.orig",
            "credentials.toml.save",
            "bunfig.toml",
            "token.json",
        ] {
            let path = format!("deep/x/{named}");
            write(&path, "sk");
            assert!(is_credential(&top.path().join(&path)), "{path}");
        }
        assert!(!is_credential(&top.path().join("v/.ssh/known_hosts")));
        write("a/b/.pgpass", "sk");
        assert!(find(top.path(), data.path()).contains(&PathBuf::from("a/b/.pgpass")));
    }
}
