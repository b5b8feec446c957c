//! Files that need more care than others, whichever tool uses them: those that hold secrets, and those that
//! change what an agent may do. This module has the only list of each; commands and file tools use it.

use super::pattern::glob;

/// Directories whose files are secrets, and files that are known by the directory they are in, wherever they are.
const SECRET_DIRECTORIES: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".password-store",
    ".config/gcloud",
    ".config/gh",
    ".kube/config",
    ".docker/config.json",
    ".local/share/keyrings",
    ".cargo/credentials",
    ".cargo/credentials.toml",
];

/// Names of files that hold a private key or credentials, wherever they are.
const SECRET_NAMES: &[&str] = &[
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "id_dsa",
    "*_rsa",
    "*_ed25519",
    ".git-credentials",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    "*.key",
    "*key.pem",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.ppk",
    "*.kdbx",
];

/// Files whose content says what an agent may do, as globs on the path inside the workspace.
const RULE_FILES: &[&str] = &[
    ".windlass/*",
    ".mcp.json",
    ".claude/*",
    ".agents/*",
    // Workflows and spells under their other name, and the settings of the runner `codex`.
    ".coven/*",
    ".codex/*",
    "AGENTS.md",
    "CLAUDE.md",
    "AGENTS.override.md",
    "CLAUDE.local.md",
];

/// What a task keeps for itself in `.windlass`; changing it changes no rules.
const OWN_FILES: &str = ".windlass/tasks/*";

/// Whether a path names a file or directory that holds secrets, wherever it lies. The path may hold globs.
pub fn is_secret(path: &str) -> bool {
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let name = parts.last().copied().unwrap_or_default();
    if is_public(name) {
        return false;
    }
    // `.key` is more often a filter of `jq` than the name of a file.
    let nameless = name.starts_with('.');
    let applies = |pattern: &&&str| !(nameless && pattern.starts_with('*'));
    let (lower, is_glob) = (name.to_ascii_lowercase(), has_glob(name));
    let is_meant = |pattern: &&str| glob(pattern, &lower) || (is_glob && glob(name, pattern));
    SECRET_NAMES.iter().filter(applies).any(is_meant) || is_among_secrets(&parts)
}

/// Whether a file holds secrets because of the directory that it is in: `.ssh`, `.aws`, `.docker/config.json`.
pub fn is_secret_by_directory(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    !is_public(parts.last().copied().unwrap_or_default()) && is_among_secrets(&parts)
}

/// What others are meant to have, or to copy.
fn is_public(name: &str) -> bool {
    let public = [".pub", ".example", ".sample", ".template", ".md"];
    public.iter().any(|ending| name.ends_with(ending)) || name == "known_hosts"
}

fn is_among_secrets(parts: &[&str]) -> bool {
    // A search of a home directory asks this for every file in it: nothing is allocated, and names are searched for
    // globs once, not once for each pattern.
    let may_be_glob = parts.iter().any(|part| has_glob(part));
    let is_meant = |(part, wanted): (&&str, &str)| {
        part.eq_ignore_ascii_case(wanted) || may_be_glob && has_glob(part) && glob(part, wanted)
    };
    SECRET_DIRECTORIES.iter().any(|directory| {
        let wanted = || directory.split('/');
        parts.windows(wanted().count()).any(|found| found.iter().zip(wanted()).all(is_meant))
    })
}

/// A part that is a glob but does not stand for just any name.
fn has_glob(part: &str) -> bool {
    part.contains(['*', '?', '[']) && part.chars().any(char::is_alphanumeric)
}

/// Whether writing this file, or making this directory, changes an agent's own rules. The path is the one inside the
/// workspace.
pub fn changes_rules(path: &str) -> bool {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    !glob(OWN_FILES, path) && tails(path).any(is_rule)
}

/// Whether a file is a rule for agents that start in a directory. The path is the one inside that directory.
pub fn is_rule_in(path: &str) -> bool {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    !glob(OWN_FILES, &path.to_ascii_lowercase()) && is_rule(path)
}

/// A path, and what of it comes after each `/`: what it may be called from the directories that it goes through.
pub fn tails(path: &str) -> impl Iterator<Item = &str> {
    std::iter::once(path).chain(path.match_indices('/').map(|(at, _)| &path[at + 1..]))
}

/// The names that a directory's own rules have: files, and directories of files.
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    RULE_FILES.iter().map(|pattern| pattern.trim_end_matches("/*"))
}

/// Case counts for less here than the file system says: some have none. What is put in place of a directory of rules
/// changes them as well.
fn is_rule(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    RULE_FILES.iter().any(|pattern| match pattern.strip_suffix("/*") {
        Some(directory) => first.eq_ignore_ascii_case(directory),
        None => path.eq_ignore_ascii_case(pattern),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_at_any_depth_and_public_files_are_not() {
        for path in [
            ".ssh/id_rsa",
            "home/.ssh/config",
            "/workspace/.ssh",
            ".aws/credentials",
            ".gnupg/secring.gpg",
            ".netrc",
            "deploy/server.key",
            "certs/private-key.pem",
            "id_ed25519",
            ".ss*/id_*",
            ".SSH/id_rsa",
            ".config/gh/hosts.yml",
        ] {
            assert!(is_secret(path), "{path}");
        }
        for path in [
            ".ssh/id_rsa.pub",
            ".ssh/known_hosts",
            "src/key.rs",
            "keys.md",
            "certs/ca.pem",
            "src/*",
            "*.rs",
            "*",
            "README.md",
            ".env.example",
        ] {
            assert!(!is_secret(path), "{path}");
        }
    }

    #[test]
    fn rule_files_are_found_and_a_tasks_own_files_are_not() {
        for path in [
            ".windlass/config.toml",
            ".windlass/skills/x/SKILL.md",
            ".mcp.json",
            "sub/AGENTS.md",
            "CLAUDE.md",
            ".claude/settings.json",
            ".agents/skills/x/SKILL.md",
            ".coven/workflows/x.yaml",
            ".codex/config.toml",
            "./agents.md",
            ".claude",
            "sub/.windlass/",
            "sub/.Agents",
        ] {
            assert!(changes_rules(path), "{path}");
        }
        assert!(is_rule_in(".claude/x") && is_rule_in("AGENTS.md") && !is_rule_in("a/AGENTS.md"));
        for path in [
            ".windlass/tasks/task_1/plan.md",
            "src/agents.rs",
            "docs/claude.txt",
            "a.json",
            "docs/agents",
            "x.claude",
        ] {
            assert!(!changes_rules(path), "{path}");
        }
    }
}
